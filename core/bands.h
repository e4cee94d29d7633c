// A band: steps of a program, one after the other, that treat the rows of their values one by one, as the
// steps of a recurrent layer do with the examples of a batch. The rows are cut into blocks of equal size, and
// a thread takes a block through all of the steps: nobody waits for the others between two steps, and what a
// step writes is in the cache of the thread that reads it next. How many blocks there are depends on the
// sizes only. gradtape/_src/engines/native/bands.py looks for bands.
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
  // Throws if steps are not what is said of them, or a block could write what another one reads.
  void check(const Program& p) const;
  void finish(const Program& p);  // before the tiles of the program's own clusters are chosen
  void run(const Program& p, Frame& f) const;
};

}  // namespace gt
