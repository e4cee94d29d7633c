// Runs clusters: tile after tile, each tile through all operations, tiles spread over threads. A reduction of
// each row is an operation like the others: tiles hold whole rows then, and later operations read its result.
#include "cluster.h"

#include <algorithm>
#include <cstring>
#include <memory>

#include "repeat.h"
#include "threads.h"

namespace gt {

// Bytes that a tile reads and writes: twice the level-1 cache, because not all of it is in use at a time.
// Measured with three clusters on Zen 4: tiles of 1024 and 2048 elements differ by up to 4 %; 512 costs up to
// 20 % and 4096 up to 28 % more than the better of them.
constexpr int64_t kTileBytes = 64 * 1024;
constexpr int64_t kLongestTile = 2048, kShortestTile = 256;
// From this many elements a row on, a loop is called for each row instead of writing out columns.
constexpr int64_t kLongRow = 64;
// Each tile has its own share of a reduction over rows if the shares of all tiles have no more bytes than
// this: larger blocks are new pages from the system every time (layer norm 1024x256 with its gradient: 377
// us, 510 with a share a tile).
constexpr int64_t kShareBytes = 1 << 16;

int64_t tile_length(int64_t arrays, int64_t widest) {
  const int64_t length = kTileBytes / (std::max<int64_t>(arrays, 1) * widest);
  return std::clamp<int64_t>(length / 64 * 64, kShortestTile, kLongestTile);
}

void Cluster::choose_tiles() {
  bool two_dimensional = false, by_rows = false;
  std::vector<uint8_t> used(scratch,
                            0);  // widths in buffers for tiles; those with an element a row are short
  bool mixed = false;
  int64_t arrays = 0;
  for (const Register& r : registers) {
    two_dimensional |= r.broadcast == Broadcast::Row || r.broadcast == Broadcast::Column;
    if (r.kind != Register::Kind::Scratch)
      arrays += r.broadcast != Broadcast::Scalar;
    else if (r.broadcast == Broadcast::Full)
      mixed |= used[r.index] && used[r.index] != r.width, used[r.index] = r.width;
  }
  arrays += scratch - std::count(used.begin(), used.end(), 0);
  for (const Epilogue& t : epilogues) by_rows |= t.over != Epilogue::Over::All;
  for (const ClusterOp& op : ops) by_rows |= op.reduces() || op.over == ClusterOp::Over::Column;
  if (!two_dimensional && !by_rows) {
    inner *= outer;
    outer = 1;
  }
  const int64_t length = tile_length(arrays, widest);
  // A piece of wide elements would overlap other pieces of narrow ones in the same buffer.
  piece = mixed ? inner : length;
  if ((outer == 1 || inner > length) && !by_rows) {
    tile_columns = length;
  } else {
    tile_rows = std::clamp<int64_t>(length / std::max<int64_t>(inner, 1), 1, std::max<int64_t>(outer, 1));
  }
  spread_columns();
}

// Operations on whole tiles read one element a row from some registers. If a tile is (part of) one row, that
// is one element. If rows are long, the operation is called for each of them. Otherwise the column is written
// out before the operation that reads it first.
void Cluster::spread_columns() {
  const bool one_row = tile_columns || tile_rows == 1;
  bool writes_out = false;
  for (ClusterOp& op : ops) {
    if (op.over == ClusterOp::Over::Column || op.reduces()) continue;
    for (int k = 0; k < op.arity; ++k) {
      if (registers[op.in[k]].broadcast != Broadcast::Column) continue;
      if (one_row || inner >= kLongRow) op.step[k] = 0;
      if (!one_row && inner >= kLongRow) op.over = ClusterOp::Over::EachRow;
      writes_out |= !one_row && inner < kLongRow;
    }
  }
  if (writes_out) write_out_columns();
}

void Cluster::write_out_columns() {
  constexpr size_t kNever = SIZE_MAX;
  std::vector<size_t> last(registers.size(), kNever);  // operation that reads a column along rows
  auto along_rows = [&](const ClusterOp& op, int k) {
    return op.over == ClusterOp::Over::Tile && !op.reduces() &&
           registers[op.in[k]].broadcast == Broadcast::Column;
  };
  for (size_t o = 0; o < ops.size(); ++o)
    for (int k = 0; k < ops[o].arity; ++k)
      if (along_rows(ops[o], k)) last[ops[o].in[k]] = o;
  std::vector<uint16_t> written(last.size(), 0);  // register of the column, written out
  std::vector<uint32_t> free;
  std::vector<ClusterOp> all;
  for (size_t o = 0; o < ops.size(); ++o) {
    ClusterOp op = ops[o];
    const uint16_t from[4] = {op.in[0], op.in[1], op.in[2], op.in[3]};
    for (int k = 0; k < op.arity; ++k) {
      if (!along_rows(op, k)) continue;
      if (!written[from[k]]) {
        if (free.empty()) free.push_back(scratch++);
        if (registers.size() > UINT16_MAX) fail(Code::Runtime, "program: a cluster has too many registers");
        ClusterOp spread;
        spread.over = ClusterOp::Over::Spread;
        spread.arity = 1, spread.in[0] = from[k];
        spread.out = written[from[k]] = uint16_t(registers.size());
        registers.push_back(
            {Register::Kind::Scratch, Broadcast::Full, registers[from[k]].width, free.back()});
        free.pop_back();
        all.push_back(spread);
      }
      op.in[k] = written[from[k]];
    }
    for (int k = 0; k < op.arity; ++k)
      if (last[from[k]] == o && op.in[k] != from[k]) {
        free.push_back(registers[op.in[k]].index);
        last[from[k]] = kNever;  // an operand may come twice
      }
    all.push_back(op);
  }
  ops = std::move(all);
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
  for (const ClusterOp& op : ops)
    if (op.over != ClusterOp::Over::Tile || op.reduces()) return false;
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

// A thread's work on a cluster.
class TileRunner {
 public:
  TileRunner(const Cluster& c, const char* const* inputs, char* const* outputs)
      : c_(c), inputs_(inputs), outputs_(outputs) {
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
        repeat_row(at_[i], inputs_[r.index], c.inner * r.width, std::min(c.tile_rows, c.outer));
      } else if (r.kind == Register::Kind::Input && r.broadcast == Broadcast::Scalar) {
        at_[i] = const_cast<char*>(inputs_[r.index]);
      } else if (r.kind == Register::Kind::Input && r.broadcast == Broadcast::Full &&
                 space * r.width >= kFetchedBytes) {
        fetched_.push_back(i);
      }
    }
  }

  // All operations over a tile.
  void run(int64_t tile) {
    int64_t row, column = 0;
    rows_ = 1;
    if (c_.tile_columns) {
      int64_t across = (c_.inner + c_.tile_columns - 1) / c_.tile_columns;
      row = tile / across;
      column = tile % across * c_.tile_columns;
      length_ = std::min(c_.tile_columns, c_.inner - column);
    } else {
      row = tile * c_.tile_rows;
      rows_ = std::min(c_.tile_rows, c_.outer - row);
      length_ = rows_ * c_.inner;
    }
    int64_t begin = row * c_.inner + column;
    for (size_t i = 0; i < c_.registers.size(); ++i) {
      const Register& r = c_.registers[i];
      if (r.kind == Register::Kind::Scratch || r.broadcast == Broadcast::Scalar || expands(r)) continue;
      char* all = r.kind == Register::Kind::Output ? outputs_[r.index] : const_cast<char*>(inputs_[r.index]);
      at_[i] = all + r.width * (r.broadcast == Broadcast::Full     ? begin
                                : r.broadcast == Broadcast::Column ? row
                                                                   : column);
    }
    if (c_.whole) return run_whole(c_, at_, length_);
    const size_t ops = c_.ops.size();
    for (size_t o = 0, end; o < ops; o = end) {
      end = o + 1;
      if (rows_ == 1 && length_ > c_.piece)
        while (in_pieces(c_.ops[o]) && end < ops && in_pieces(c_.ops[end])) ++end;
      for (size_t i : fetched_) {
        const int64_t bytes = length_ * c_.registers[i].width;
        fetch(at_[i] + bytes, bytes * int64_t(o) / int64_t(ops), bytes * int64_t(end) / int64_t(ops));
      }
      if (end == o + 1)
        run(c_.ops[o]);
      else
        for (int64_t from = 0; from < length_; from += c_.piece)
          for (size_t k = o; k < end; ++k) run_piece(c_.ops[k], from, std::min(c_.piece, length_ - from));
    }
  }

  // The last tile's share of a reduction.
  void reduce(const Epilogue& t, char* out) const {
    if (t.over == Epilogue::Over::All)
      t.loop(out, at_[t.in], length_, 1);
    else
      t.loop(out, at_[t.in], rows_, c_.inner);
  }

 private:
  // With several rows in a tile, a row that repeats is written out once.
  bool expands(const Register& r) const {
    return r.kind == Register::Kind::Input && r.broadcast == Broadcast::Row && c_.tile_rows > 1;
  }

  void run(const ClusterOp& op) {
    if (op.reduce) return reduce_rows(op);
    if (op.product || op.moments)
      return c_.registers[op.out].width == sizeof(float) ? reduce_rows<float>(op) : reduce_rows<double>(op);
    switch (op.over) {
      case ClusterOp::Over::Tile: return run_operation(op, at_, length_);
      case ClusterOp::Over::Column: return run_operation(op, at_, rows_);
      case ClusterOp::Over::Spread:
        return write_column(at_[op.out], at_[op.in[0]], c_.registers[op.out].width, rows_, c_.inner);
      case ClusterOp::Over::EachRow: return run_each_row(op);
    }
  }

  static bool in_pieces(const ClusterOp& op) { return op.over == ClusterOp::Over::Tile && !op.reduces(); }

  // A tile that is one long row goes through the operations between two reductions piece by piece.
  void run_piece(const ClusterOp& op, int64_t from, int64_t n) {
    auto place = [&](uint16_t r) { return at_[r] + from * c_.registers[r].width; };
    if (op.cast) return op.cast(place(op.out), place(op.in[0]), n);
    const void* in[4];
    for (int k = 0; k < op.arity; ++k) in[k] = op.step[k] ? place(op.in[k]) : at_[op.in[k]];
    op.loop(place(op.out), in, op.step, n);
  }

  void run_each_row(const ClusterOp& op) {
    const void* in[4];
    int64_t stride[4];
    for (int k = 0; k < op.arity; ++k) {
      const Register& r = c_.registers[op.in[k]];
      stride[k] = r.broadcast == Broadcast::Column   ? r.width
                  : r.broadcast == Broadcast::Scalar ? 0
                                                     : r.width * c_.inner;
    }
    const int64_t out = c_.registers[op.out].width * c_.inner;
    for (int64_t i = 0; i < rows_; ++i) {
      for (int k = 0; k < op.arity; ++k) in[k] = at_[op.in[k]] + i * stride[k];
      op.loop(at_[op.out] + i * out, in, op.step, c_.inner);
    }
  }

  void reduce_rows(const ClusterOp& op) {
    const int64_t stride = c_.registers[op.in[0]].width * c_.inner, width = c_.registers[op.out].width;
    for (int64_t i = 0; i < rows_; ++i)
      op.reduce(at_[op.out] + i * width, at_[op.in[0]] + i * stride, c_.inner, 1);
  }

  template <class T> void reduce_rows(const ClusterOp& op) {
    auto row = [&](int k, int64_t i) { return reinterpret_cast<const T*>(at_[op.in[k]]) + i * c_.inner; };
    auto column = [&](uint16_t r) { return reinterpret_cast<T*>(at_[r]); };
    double first, second;
    for (int64_t i = 0; i < rows_; ++i) {
      if (op.product) {
        op.product(row(0, i), row(1, i), c_.inner, &first);
      } else {
        op.moments(row(0, i), c_.inner, &first, &second);
        column(op.second)[i] = T(second / double(c_.inner));
      }
      column(op.out)[i] = T(first);
    }
  }

  const Cluster& c_;
  const char* const* inputs_;
  char* const* outputs_;
  // Where each register is: most clusters have few, which need no memory of their own.
  static constexpr size_t kFew = 32;
  char* few_[kFew];
  std::unique_ptr<char*[]> more_;
  char** at_ = few_;
  std::vector<size_t> fetched_;  // registers whose next tile is prefetched
  int64_t rows_ = 1, length_;    // of the tile
};

namespace {

// A running reduction. Parts of the work leave their shares in separate places, which are combined in the
// order of the parts, whichever thread computed them. A part is a tile; where the shares, as long as a row
// each, would take much memory, a part is a chunk of tiles, added up one after the other.
class Shares {
 public:
  Shares(const Epilogue& e, char* out, int64_t inner, int64_t count, int64_t grain)
      : epilogue_(e),
        n_(e.over == Epilogue::Over::All ? 1 : inner),
        tiles_(n_ == 1 || count * bytes() <= kShareBytes ? 1 : grain) {
    parts_ = (count - 1) / tiles_ + 1;
    out_ = all_ = out;
    if (parts_ == 1) return;
    memory_.reset(new char[size_t(parts_ * bytes())]);
    all_ = memory_.get();
  }

  int64_t bytes() const { return n_ * epilogue_.width; }
  // `room`: for two shares.
  void add(const TileRunner& runner, int64_t tile, char* room) const {
    char* share = all_ + tile / tiles_ * bytes();
    if (tile % tiles_ == 0) return runner.reduce(epilogue_, share);
    std::memcpy(room, share, size_t(bytes()));
    runner.reduce(epilogue_, room + bytes());
    epilogue_.loop(share, room, 2, n_);
  }
  void finish() const {
    if (parts_ > 1) epilogue_.loop(out_, all_, parts_, n_);
  }

 private:
  const Epilogue& epilogue_;
  const int64_t n_, tiles_;  // elements of the result; tiles of a part
  int64_t parts_;
  char *out_, *all_;
  std::unique_ptr<char[]> memory_;
};

}  // namespace

void Cluster::run(const char* const* inputs, char* const* outputs) const {
  if (outer * inner == 0) return;
  const int64_t count = tiles(), per_tile = tile_columns ? tile_columns : tile_rows * inner;
  const int64_t grain =
      std::max<int64_t>(1, int64_t(kChunkNanoseconds / (std::max(cost, 0.05) * double(per_tile))));
  std::vector<Shares> shares;
  shares.reserve(epilogues.size());
  int64_t longest = 0;
  for (const Epilogue& e : epilogues) {
    shares.emplace_back(e, outputs[e.out], inner, count, grain);
    longest = std::max(longest, shares.back().bytes());
  }
  parallel_for(count, grain, [&](int64_t begin, int64_t end) {
    TileRunner runner(*this, inputs, outputs);
    std::unique_ptr<char[]> room(longest ? new char[size_t(2 * longest)] : nullptr);
    for (int64_t tile = begin; tile < end; ++tile) {
      runner.run(tile);
      for (const Shares& s : shares) s.add(runner, tile, room.get());
    }
  });
  for (const Shares& s : shares) s.finish();
}

}  // namespace gt
