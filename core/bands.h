// A band: consecutive steps of a program that treat each row of their values independently, as the steps of a
// recurrent layer treat the examples of a batch. The rows are cut into blocks of equal size, and one thread
// takes a block through all of the steps: threads do not synchronize between two steps, and what a step
// writes is still in the cache of the thread that reads it next. The number of blocks depends on the sizes
// only. gradtape/_src/engines/native/bands.py looks for bands.
#pragma once
#include <vector>

#include "cluster.h"

namespace gt {

class Program;
struct Frame;

struct Band {
  uint32_t first = 0;   // step
  uint32_t blocks = 1;  // into which rows are cut
  // For each step and operand: whether a block reads its part of it, or all. Of results it writes its part.
  std::vector<std::vector<bool>> cut;
  std::vector<Cluster> clusters;  // those of the steps, with the size of a block

  size_t end() const { return first + cut.size(); }
  // Throws if the steps cannot be cut into these blocks, or if a block could write what another one reads.
  void check(const Program& p) const;
  void finish(const Program& p);  // before the tiles of the program's own clusters are chosen
  void run(const Program& p, Frame& f) const;
};

}  // namespace gt
