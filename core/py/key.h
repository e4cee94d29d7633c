// "Have I seen this before": what things are recognised by, and caches of what was made for them.
//
// A thing is described by words and objects. Plain values (numbers, texts, types, tuples of them) are
// compared as values of one type and kept. Other objects are held weakly and compared by identity, or by
// their own `==` where they can be hashed. A key whose object has died equals nothing any more: an address or
// an id says nothing about a thing that may be gone.
#pragma once
#include <algorithm>
#include <list>
#include <memory>
#include <unordered_map>

#include "objects.h"

namespace gt {

// A description, made to look something up. Borrows its objects, but where other threads may take them away.
struct Query {
  std::vector<uint64_t> words;
  std::vector<PyObject*> objects;
  std::vector<Ref<>> held;

  void add(uint64_t word) { words.push_back(word); }
  void add(const Tensor& t, uint32_t number = 0);  // type and shape, and a number beside them
  void add_object(PyObject* o);                    // a value or an object; adds what it hashes to
  void add_nest(PyObject* o);                      // lists, tuples and dicts of such, and of tensors
  uint64_t hash() const;
};

// An object of a key: kept if it is a plain value, else held weakly.
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
  // Asks objects whether they are equal, which may run Python code.
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

// Values by keys, the most recently found first. Entries are shared: whoever found one may run any code
// while it is thrown out. Dead keys are let go of as others come.
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

  // Gives back the entries that it let go of because their objects have died.
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
  // Takes them out first: letting go may run any code.
  std::list<Shared> take_all() {
    by_hash_.clear();
    alive_ = 0;
    return std::move(entries_);
  }
  // Lets go of entries whose objects have died, and gives them back.
  std::list<Shared> sweep() {
    // To look at an object is to hold it, and may be to let go of it last: any code may run meanwhile.
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
  bool erase(const Shared& e) {  // false: it is there no more
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

// Whether a value stays what it is, so that what was made for it can be used again: a plain one, or one that
// can be hashed by what it holds. Anything else may have changed since.
bool is_constant(PyObject* o);

void init_cache_type(PyObject* module);

}  // namespace gt
