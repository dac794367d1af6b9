// The packed weights of one node, in a file that several processes map, or in memory of this process alone.
#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <string>

#include "runtime/memory.h"

namespace dragoman {

// Each process packs all weights and compares them with the file, block by block, so nothing in the file is ever
// trusted: what is not as it should be is kept in this process's own memory. A block is some 100 kB at most, so loading
// takes no more memory than the file. Whoever is alone with the file completes it. A lock says who uses it; the last
// one deletes it.
class SharedWeights {
public:
  // Writes one block, which is zero.
  using Fill = std::function<void(int64_t block, int8_t *to)>;

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

  // Return blocks, aligned to 64 bytes if their size is a multiple of that; valid as long as this is. In every process
  // the same calls must be made in the same order. Throws what `fill` throws.
  const int8_t *keep(int64_t num_blocks, int64_t block_bytes, const Fill &fill);
  // Let other processes use the file: nothing more is kept.
  void complete();

private:
  bool share(int64_t place, int64_t num_blocks, int64_t block_bytes, const Fill &fill);
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
