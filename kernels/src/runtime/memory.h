// Aligned memory.
#pragma once

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <vector>

namespace dragoman {

constexpr size_t kAlignment = 64;

// An array whose size is fixed; zeroed, aligned for every instruction set.
template <typename T> class Array {
public:
  Array() = default;
  explicit Array(int64_t size) : size_(size) {
    size_t bytes = (static_cast<size_t>(size) * sizeof(T) + kAlignment - 1) / kAlignment * kAlignment + kAlignment;
    data_.reset(static_cast<T *>(std::aligned_alloc(kAlignment, bytes)));
    if (!data_)
      throw std::bad_alloc();
    std::memset(static_cast<void *>(data_.get()), 0, bytes);
  }
  T *data() { return data_.get(); }
  const T *data() const { return data_.get(); }
  T &operator[](int64_t index) { return data_.get()[index]; }
  const T &operator[](int64_t index) const { return data_.get()[index]; }
  int64_t size() const { return size_; }

  // Make room for `size` elements; what was there is lost.
  T *at_least(int64_t size) {
    if (size > size_)
      *this = Array(size + size / 4);
    return data();
  }

private:
  struct Free {
    void operator()(T *data) const { std::free(data); }
  };
  std::unique_ptr<T, Free> data_;
  int64_t size_ = 0;
};

// Workspaces of one kernel, one for each thread that runs it at the same time, kept for the next run.
template <typename Workspace> class Pool {
public:
  class Lease {
  public:
    explicit Lease(Pool &pool) : pool_(pool), own_(pool.take()) {}
    Lease(const Lease &) = delete;
    Lease &operator=(const Lease &) = delete;
    ~Lease() { pool_.give_back(std::move(own_)); }
    Workspace &operator*() { return *own_; }

  private:
    Pool &pool_;
    std::unique_ptr<Workspace> own_;
  };

private:
  std::unique_ptr<Workspace> take() {
    std::lock_guard<std::mutex> lock(mutex_);
    if (free_.empty()) {
      free_.reserve(free_.capacity() + 1); // so that giving back can't fail
      return std::make_unique<Workspace>();
    }
    std::unique_ptr<Workspace> last = std::move(free_.back());
    free_.pop_back();
    return last;
  }
  void give_back(std::unique_ptr<Workspace> workspace) noexcept {
    std::lock_guard<std::mutex> lock(mutex_);
    free_.push_back(std::move(workspace));
  }
  std::mutex mutex_;
  std::vector<std::unique_ptr<Workspace>> free_;
};

} // namespace dragoman
