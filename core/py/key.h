// Cache keys, and caches with them: compiled passes by their structure, traced functions by their arguments.
//
// A key consists of integers (words) and Python objects. Plain values (numbers, strings, types, tuples of
// them) are kept and compared by type and value. Other objects are referred to weakly and compared by
// identity, or by `==` if they are hashable. A key with a dead object matches nothing: another object may
// have its address by now.
#pragma once
#include <algorithm>
#include <list>
#include <memory>
#include <unordered_map>

#include "objects.h"

namespace gt {

// A key to look up. Borrows its objects, except those that another thread may release (`held`).
struct Query {
  std::vector<uint64_t> words;
  std::vector<PyObject*> objects;
  std::vector<Ref<>> held;

  void add(uint64_t word) { words.push_back(word); }
  void add(const Tensor& t, uint32_t number = 0);  // type, shape and a number
  void add_object(PyObject* o);                    // and its hash
  void add_nest(PyObject* o);                      // lists, tuples and dicts of objects and tensors
  uint64_t hash() const;
};

// An object of a key: a strong reference to a plain value, else a weak one.
class Held {
 public:
  explicit Held(PyObject* o);
  bool is(PyObject* o) const;
  bool dead() const;

 private:
  enum class How : uint8_t { Value, Same, Equal } how_;
  bool weak_ = false;
  Ref<> object_;  // or the weak reference to it
};

class Key {
 public:
  explicit Key(const Query& q) : words_(q.words), hash_(q.hash()) {
    objects_.reserve(q.objects.size());
    for (PyObject* o : q.objects) objects_.emplace_back(o);
  }
  uint64_t hash() const { return hash_; }
  size_t bytes() const { return words_.size() * sizeof(uint64_t) + objects_.size() * sizeof(Held); }
  bool dead() const {
    return std::any_of(objects_.begin(), objects_.end(), [](const Held& h) { return h.dead(); });
  }
  // May run Python code, in `==` of the objects.
  bool matches(const Query& q) const {
    if (words_ != q.words || objects_.size() != q.objects.size()) return false;
    for (size_t i = 0; i < objects_.size(); ++i)
      if (!objects_[i].is(q.objects[i])) return false;
    return true;
  }

 private:
  std::vector<uint64_t> words_;
  std::vector<Held> objects_;
  uint64_t hash_;
};

// Values by keys, most recently used first. Entries are shared pointers, so one that was found outlives its
// eviction. Entries with dead keys are removed as others are added.
template <class V> class KeyedCache {
 public:
  struct Entry {
    Key key;
    V value;
  };
  using Shared = std::shared_ptr<Entry>;

  Shared find(const Query& q) {
    uint64_t h = q.hash();
    auto [begin, end] = by_hash_.equal_range(h);
    if (begin == end) return nullptr;
    std::vector<Shared> candidates;
    for (auto it = begin; it != end; ++it) candidates.push_back(*it->second);
    for (Shared& e : candidates)
      if (e->key.matches(q)) {
        to_front(e);
        return e;
      }
    return nullptr;
  }

  // Returns the entries that were removed because their objects have died.
  std::list<Shared> add(const Query& q, V value) {
    std::list<Shared> dead;
    if (entries_.size() >= 2 * alive_ + 16) dead = sweep();
    entries_.push_front(std::make_shared<Entry>(Entry{Key(q), std::move(value)}));
    by_hash_.emplace(entries_.front()->key.hash(), entries_.begin());
    return dead;
  }

  size_t size() const { return entries_.size(); }
  const std::list<Shared>& entries() const { return entries_; }
  Shared pop_oldest() {
    Shared last = entries_.back();
    erase(last);
    return last;
  }
  // Freeing entries may run any code, so they are taken out first.
  std::list<Shared> take_all() {
    by_hash_.clear();
    alive_ = 0;
    return std::move(entries_);
  }
  // Removes entries whose objects have died, and returns them.
  std::list<Shared> sweep() {
    // To check an object takes a reference, which may turn out to be the last: dropping it may run any code.
    std::list<Shared> dead, all = entries_;
    for (Shared& e : all)
      if (e->key.dead() && erase(e)) dead.push_back(e);
    alive_ = entries_.size();
    return dead;
  }

 private:
  using Place = typename std::list<Shared>::iterator;
  void to_front(const Shared& e) {
    auto [begin, end] = by_hash_.equal_range(e->key.hash());
    for (auto it = begin; it != end; ++it)
      if (*it->second == e) return entries_.splice(entries_.begin(), entries_, it->second);
  }
  bool erase(const Shared& e) {  // false: it was removed before
    auto [begin, end] = by_hash_.equal_range(e->key.hash());
    for (auto it = begin; it != end; ++it)
      if (*it->second == e) {
        entries_.erase(it->second);
        by_hash_.erase(it);
        return true;
      }
    return false;
  }
  std::list<Shared> entries_;
  std::unordered_multimap<uint64_t, Place> by_hash_;
  size_t alive_ = 0;  // after the last sweep
};

// Whether a value cannot change, so that a result computed from it can be reused: plain values, and objects
// that are hashed by their contents.
bool is_constant(PyObject* o);

void init_cache_type(PyObject* module);

}  // namespace gt
