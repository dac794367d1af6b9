// The packed weights of one node, in a file that several processes map, or in memory of this process alone.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <string>

#include "runtime/memory.h"

namespace dragoman {

// Each process packs all weights and compares them with the file, block by block, so nothing in the file is ever
// trusted: what is not as it should be is kept in this process's own memory. A block is some 100 kB at most, so loading
// takes no more memory than the file. Whoever is alone with the file completes it. A lock says who uses it; the last
// one deletes it.
class SharedWeights {
public:
  struct File {
    std::string directory, name; // without a directory, there is no file
    int64_t num_bytes;
  };

  // Use a file if it and its directory are this user's alone; otherwise this process's memory. Waits, up to a minute,
  // while another process writes the file.
  explicit SharedWeights(const File &file);
  ~SharedWeights();
  SharedWeights(const SharedWeights &) = delete;
  SharedWeights &operator=(const SharedWeights &) = delete;

  // Return packed blocks, aligned to 64 bytes if their size is a multiple of that; valid as long as this is.
  // `fill(block, to)` writes one, where there are zeros. In every process the same calls must be made in the same order.
  template <class Fill> const int8_t *keep(int64_t num_blocks, int64_t block_bytes, const Fill &fill) {
    int64_t begin = num_kept_;
    num_kept_ += num_blocks * block_bytes;
    bool is_shared = mapped_ != nullptr;
    Array<int8_t> packed(is_shared ? block_bytes : 0);
    for (int64_t block = 0; is_shared && block < num_blocks; block++) {
      std::memset(packed.data(), 0, static_cast<size_t>(block_bytes));
      fill(block, packed.data());
      is_shared = has(begin + block * block_bytes, packed);
    }
    if (is_shared)
      return mapped_ + begin;
    Array<int8_t> &own = own_.emplace_back(num_blocks * block_bytes);
    for (int64_t block = 0; block < num_blocks; block++)
      fill(block, own.data() + block * block_bytes);
    return own.data();
  }
  // Let other processes use the file: nothing more is kept.
  void complete();

private:
  // Return whether the file has a block, if need be because it is written.
  bool has(int64_t place, const Array<int8_t> &block);
  void let_go() noexcept;

  std::string path_;
  int file_ = -1;
  bool writes_ = false; // it is alone with the file
  const int8_t *mapped_ = nullptr;
  int64_t num_mapped_ = 0, num_kept_ = 0; // bytes
  std::deque<Array<int8_t>> own_;
};

// A hash of bytes, continued from another; only names files, as their contents are compared.
uint64_t hash_of(const void *data, int64_t size, uint64_t before);

} // namespace dragoman
