// Runs clusters: tile after tile, each tile through all operations, tiles spread over threads.
#include "cluster.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "repeat.h"
#include "threads.h"

namespace gt {

// Everything a tile reads and writes, in bytes: twice the level-1 cache, because not all of it is
// in use at a time. Measured with three clusters on Zen 4: tiles of 1024 and 2048 elements differ
// by up to 4 %, 512 costs up to 20 % and 4096 up to 28 % more than the better of them.
constexpr int64_t kTileBytes = 64 * 1024;
constexpr int64_t kLongestTile = 2048, kShortestTile = 256;

int64_t tile_length(int64_t arrays, int64_t widest) {
  const int64_t length = kTileBytes / (std::max<int64_t>(arrays, 1) * widest);
  return std::clamp<int64_t>(length / 64 * 64, kShortestTile, kLongestTile);
}

void Cluster::choose_tiles() {
  bool two_dimensional = false;
  for (const Register& r : registers)
    two_dimensional |= r.kind == Register::Kind::Input &&
                       (r.broadcast == Broadcast::Row || r.broadcast == Broadcast::Column);
  bool by_rows = false;
  for (const Epilogue& t : epilogues) by_rows |= t.over != Epilogue::Over::All;
  if (!two_dimensional && !by_rows) {
    inner *= outer;
    outer = 1;
  }
  int64_t arrays = scratch;
  for (const Register& r : registers)
    arrays += r.kind != Register::Kind::Scratch && r.broadcast != Broadcast::Scalar;
  const int64_t length = tile_length(arrays, widest);
  if (outer == 1 || (inner > length && !by_rows)) {
    tile_columns = length;
  } else {
    tile_rows = std::clamp<int64_t>(length / std::max<int64_t>(inner, 1), 1, outer);
  }
}

int64_t Cluster::tiles() const {
  if (tile_columns) return outer * ((inner + tile_columns - 1) / tile_columns);
  return (outer + tile_rows - 1) / tile_rows;
}

bool Cluster::is_short() const {
  const int64_t size = outer * inner;
  if (size == 0 || size > kShortElements || tiles() != 1 || !epilogues.empty()) return false;
  for (const Register& r : registers)
    if (r.kind == Register::Kind::Input && !tile_columns &&
        (r.broadcast == Broadcast::Row || r.broadcast == Broadcast::Column))
      return false;
  return true;
}

char* scratch_memory(size_t bytes) {
  struct Block {
    std::unique_ptr<char[]> data;
    size_t size = 0;
  };
  static thread_local Block block;
  if (block.size < bytes) {
    block.data.reset(new char[bytes + 64]);
    block.size = bytes;
  }
  return reinterpret_cast<char*>((reinterpret_cast<uintptr_t>(block.data.get()) + 63) & ~uintptr_t(63));
}

namespace {

// Rows long enough for a vector loop are filled by one: x | x is x, of any type.
void write_column(char* out, const char* column, int width, int64_t rows, int64_t inner) {
  static const Elementwise& self = *find_elementwise("bitwise_or");
  const Dtype t = width == 1 ? Dtype::U8 : width == 2 ? Dtype::U16 : width == 4 ? Dtype::U32 : Dtype::U64;
  if (width > 8 || inner < 16) return repeat_column(out, column, width, rows, inner);
  const Loop loop = self.loop[int(t)];
  const uint8_t step[2] = {0, 0};
  for (int64_t i = 0; i < rows; ++i) {
    const void* in[2] = {column + i * width, column + i * width};
    loop(out + i * inner * width, in, step, inner);
  }
}

}  // namespace

// A cluster at work on one thread.
class TileRunner {
 public:
  TileRunner(const Cluster& c, const char* const* inputs, char* const* outputs, char* const* partials)
      : c_(c), inputs_(inputs), outputs_(outputs), partials_(partials) {
    if (c.registers.size() > kFew) {
      more_ = std::make_unique<char*[]>(c.registers.size());
      at_ = more_.get();
    }
    int64_t space = c.inner * c.outer;
    length_ = std::min(c.tile_columns ? c.tile_columns : c.tile_rows * c.inner, space);
    int64_t stride = (length_ * c.widest + 63) / 64 * 64;
    uint32_t buffers = c.scratch;
    for (const Register& r : c.registers) buffers += expands(r);
    char* memory = scratch_memory(size_t(stride) * std::max(buffers, 1u));
    uint32_t next = c.scratch;
    for (size_t i = 0; i < c.registers.size(); ++i) {
      const Register& r = c.registers[i];
      if (r.kind == Register::Kind::Scratch) at_[i] = memory + stride * r.index;
      if (expands(r)) {
        at_[i] = memory + stride * next++;
        if (r.broadcast == Broadcast::Row)
          repeat_row(at_[i], inputs_[r.index], c.inner * r.width, std::min(c.tile_rows, c.outer));
      } else if (r.kind == Register::Kind::Input && r.broadcast == Broadcast::Scalar) {
        at_[i] = const_cast<char*>(inputs_[r.index]);
      } else if (r.kind == Register::Kind::Input && r.broadcast == Broadcast::Full &&
                 space * r.width >= kFetchedBytes) {
        fetched_.push_back(i);
      }
    }
  }

  void run(int64_t tile) {
    int64_t row, column = 0, rows = 1, length;
    if (c_.tile_columns) {
      int64_t across = (c_.inner + c_.tile_columns - 1) / c_.tile_columns;
      row = tile / across;
      column = tile % across * c_.tile_columns;
      length = std::min(c_.tile_columns, c_.inner - column);
    } else {
      row = tile * c_.tile_rows;
      rows = std::min(c_.tile_rows, c_.outer - row);
      length = rows * c_.inner;
    }
    int64_t begin = row * c_.inner + column;
    for (size_t i = 0; i < c_.registers.size(); ++i) {
      const Register& r = c_.registers[i];
      if (r.kind == Register::Kind::Scratch) continue;
      if (r.kind == Register::Kind::Output) {
        at_[i] = outputs_[r.index] + begin * r.width;
      } else if (r.broadcast == Broadcast::Full) {
        at_[i] = const_cast<char*>(inputs_[r.index]) + begin * r.width;
      } else if (r.broadcast == Broadcast::Column) {
        if (expands(r))
          write_column(at_[i], inputs_[r.index] + row * r.width, r.width, rows, c_.inner);
        else
          at_[i] = const_cast<char*>(inputs_[r.index]) + row * r.width;
      } else if (r.broadcast == Broadcast::Row && !expands(r)) {
        at_[i] = const_cast<char*>(inputs_[r.index]) + column * r.width;
      }
    }
    if (fetched_.empty()) {
      run_operations(c_, at_, length, [](int64_t) {});
    } else {
      const int64_t ops = int64_t(c_.ops.size());
      run_operations(c_, at_, length, [&](int64_t o) {
        for (size_t i : fetched_) {
          const int64_t bytes = length * c_.registers[i].width;
          fetch(at_[i] + bytes, bytes * o / ops, bytes * (o + 1) / ops);
        }
      });
    }
    for (size_t t = 0; t < c_.epilogues.size(); ++t)
      reduce(c_.epilogues[t], partials_[t], tile, row, rows, length);
  }

 private:
  // With whole rows in a tile a repeating operand is written out once per tile.
  bool expands(const Register& r) const {
    return r.kind == Register::Kind::Input && !c_.tile_columns &&
           (r.broadcast == Broadcast::Row || r.broadcast == Broadcast::Column);
  }

  void reduce(const Epilogue& t, char* partial, int64_t tile, int64_t row, int64_t rows, int64_t length) {
    const char* x = at_[t.in];
    switch (t.over) {
      case Epilogue::Over::All: t.loop(partial + tile * t.width, x, length, 1); break;
      case Epilogue::Over::Rows: t.loop(partial + tile * c_.inner * t.width, x, rows, c_.inner); break;
      case Epilogue::Over::Columns:
        for (int64_t i = 0; i < rows; ++i)
          t.loop(partial + (row + i) * t.width, x + i * c_.inner * t.in_width, c_.inner, 1);
    }
  }

  const Cluster& c_;
  const char* const* inputs_;
  char* const* outputs_;
  char* const* partials_;
  // Where each register is: most clusters have few, which need no memory of their own.
  static constexpr size_t kFew = 32;
  char* few_[kFew];
  std::unique_ptr<char*[]> more_;
  char** at_ = few_;
  std::vector<size_t> fetched_;  // registers whose next tile is asked for early
  int64_t length_;
};

void Cluster::run(const char* const* inputs, char* const* outputs) const {
  int64_t count = tiles();
  if (outer * inner == 0) return;
  // Each tile leaves its share of a reduction in a place of its own; they are put together in
  // the order of the tiles, whoever computed them.
  auto results = [&](const Epilogue& e) {
    return e.over == Epilogue::Over::All ? 1 : e.over == Epilogue::Over::Rows ? inner : outer;
  };
  std::vector<char*> partials(epilogues.size());
  std::vector<std::unique_ptr<char[]>> owned;
  for (size_t t = 0; t < epilogues.size(); ++t) {
    const Epilogue& epilogue = epilogues[t];
    const bool whole = epilogue.over == Epilogue::Over::Columns || count == 1;  // nothing is put together
    if (whole && !epilogue.narrow) {
      partials[t] = outputs[epilogue.out];
    } else {
      owned.emplace_back(new char[size_t((whole ? 1 : count) * results(epilogue) * epilogue.width)]);
      partials[t] = owned.back().get();
    }
  }
  auto finish = [&] {
    for (size_t t = 0; t < epilogues.size(); ++t) {
      const Epilogue& epilogue = epilogues[t];
      const int64_t n = results(epilogue);
      char *out = outputs[epilogue.out], *sums = partials[t];
      if (epilogue.over != Epilogue::Over::Columns && count > 1) {
        sums = epilogue.narrow ? partials[t] : out;
        epilogue.again(sums, partials[t], count, n);
      }
      if (epilogue.narrow) epilogue.narrow(out, sums, n);
    }
  };
  if (count == 1) {
    TileRunner(*this, inputs, outputs, partials.data()).run(0);
    return finish();
  }
  int64_t per_tile = tile_columns ? tile_columns : tile_rows * inner;
  int64_t grain =
      std::max<int64_t>(1, int64_t(kChunkNanoseconds / (std::max(cost, 0.05) * double(per_tile))));
  parallel_for(count, grain, [&](int64_t begin, int64_t end) {
    TileRunner runner(*this, inputs, outputs, partials.data());
    for (int64_t tile = begin; tile < end; ++tile) runner.run(tile);
  });
  finish();
}

}  // namespace gt
