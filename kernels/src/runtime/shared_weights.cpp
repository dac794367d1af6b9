#include "runtime/shared_weights.h"

#if __has_include(<sys/mman.h>) && __has_include(<sys/file.h>)
#define DRAGOMAN_MAPS_FILES
#include <fcntl.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#endif

namespace dragoman {

namespace {

#ifdef DRAGOMAN_MAPS_FILES

constexpr int kMostTries = 6000;
constexpr timespec kPause{0, 10'000'000}; // nanoseconds

bool is_ours_alone(const struct stat &info) { return info.st_uid == geteuid() && (info.st_mode & 077) == 0; }

// Open and lock a file, made if it is missing, and say whether nobody else uses it; -1 if that can't be done, or takes
// too long.
int open_locked(const std::string &directory, const std::string &path, bool *is_alone) {
  struct stat info {};
  if (stat(directory.c_str(), &info) != 0 || !S_ISDIR(info.st_mode) || !is_ours_alone(info))
    return -1;
  for (int tries = 0; tries < kMostTries; tries++) {
    int file = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (file < 0)
      return -1;
    *is_alone = flock(file, LOCK_EX | LOCK_NB) == 0;
    bool is_locked = *is_alone || flock(file, LOCK_SH | LOCK_NB) == 0;
    bool is_usable = fstat(file, &info) == 0 && S_ISREG(info.st_mode) && is_ours_alone(info);
    if (is_usable && is_locked && info.st_nlink > 0)
      return file;
    close(file); // it is being written, or was deleted by its last user
    if (!is_usable)
      return -1;
    nanosleep(&kPause, nullptr);
  }
  return -1;
}

bool write_all(int file, const int8_t *data, int64_t size, int64_t place) {
  while (size > 0) {
    ssize_t written = pwrite(file, data, static_cast<size_t>(size), place);
    if (written <= 0)
      return false;
    data += written;
    place += written;
    size -= written;
  }
  return true;
}

#else

bool write_all(int, const int8_t *, int64_t, int64_t) { return false; }

#endif

} // namespace

SharedWeights::SharedWeights(const File &file) {
#ifdef DRAGOMAN_MAPS_FILES
  const int64_t num_bytes = file.num_bytes;
  if (file.directory.empty() || num_bytes <= 0)
    return;
  path_ = file.directory + "/" + file.name;
  file_ = open_locked(file.directory, path_, &writes_);
  if (file_ < 0)
    return;
  // A file without its memory would end the process when it is read.
  bool has_size = !writes_ || (ftruncate(file_, num_bytes) == 0 && posix_fallocate(file_, 0, num_bytes) == 0);
  struct stat info {};
  if (has_size && fstat(file_, &info) == 0 && info.st_size == num_bytes) {
    void *mapped = mmap(nullptr, static_cast<size_t>(num_bytes), PROT_READ, MAP_SHARED, file_, 0);
    if (mapped != MAP_FAILED) {
      mapped_ = static_cast<const int8_t *>(mapped);
      num_mapped_ = num_bytes;
      return;
    }
  }
  let_go();
#else
  static_cast<void>(file);
#endif
}

SharedWeights::~SharedWeights() { let_go(); }

void SharedWeights::let_go() noexcept {
#ifdef DRAGOMAN_MAPS_FILES
  if (mapped_ != nullptr)
    munmap(const_cast<int8_t *>(mapped_), static_cast<size_t>(num_mapped_));
  if (file_ >= 0) {
    if (flock(file_, LOCK_EX | LOCK_NB) == 0)
      unlink(path_.c_str());
    close(file_);
  }
#endif
  mapped_ = nullptr;
  file_ = -1;
}

bool SharedWeights::has(int64_t place, const Array<int8_t> &block) {
  if (place + block.size() > num_mapped_)
    return false;
  auto is_there = [&] { return std::memcmp(mapped_ + place, block.data(), static_cast<size_t>(block.size())) == 0; };
  return is_there() || (writes_ && write_all(file_, block.data(), block.size(), place) && is_there());
}

void SharedWeights::complete() {
#ifdef DRAGOMAN_MAPS_FILES
  if (file_ >= 0 && writes_)
    flock(file_, LOCK_SH);
#endif
  writes_ = false;
}

uint64_t hash_of(const void *data, int64_t size, uint64_t before) {
  constexpr uint64_t kPrime = 0x9E3779B97F4A7C15;
  auto mixed = [](uint64_t hash, uint64_t word) {
    hash = (hash ^ word) * kPrime;
    return hash ^ hash >> 29;
  };
  const char *bytes = static_cast<const char *>(data);
  uint64_t hash = mixed(before, static_cast<uint64_t>(size)), word = 0;
  for (; size >= 8; size -= 8, bytes += 8) {
    std::memcpy(&word, bytes, 8);
    hash = mixed(hash, word);
  }
  word = 0;
  if (size > 0)
    std::memcpy(&word, bytes, static_cast<size_t>(size));
  return mixed(hash, word);
}

} // namespace dragoman
