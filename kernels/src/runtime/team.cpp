#include "runtime/team.h"

#include <sched.h>
#include <unistd.h>

#include <memory>
#include <system_error>

namespace dragoman {

namespace {

constexpr int kSpins = 2000; // some 20 to 60 microseconds; then the CPU is offered to others between looks
constexpr int kYields = 200; // and then, if no run is under way, the helper sleeps

void pause() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// A thread's team. A child of `fork` has a copy whose threads don't exist: it is left as it is, since ending it would
// wait for them forever.
struct Own {
  std::unique_ptr<Team> team;
  pid_t process = 0;

  Team &of_this_process() {
    if (process != getpid()) {
      (void)team.release();
      team = std::make_unique<Team>();
      process = getpid();
    }
    return *team;
  }
  ~Own() {
    if (process != getpid())
      (void)team.release();
  }
};

} // namespace

Team &Team::of_this_thread() {
  thread_local Own own;
  return own.of_this_process();
}

Team::~Team() {
  {
    std::lock_guard<std::mutex> lock(mutex_);
    ends_.store(true);
  }
  begun_.notify_all();
  for (std::thread &helper : helpers_)
    helper.join();
}

void Team::begin(int num_threads) {
  try {
    while (static_cast<int>(helpers_.size()) < num_threads - 1) {
      int number = static_cast<int>(helpers_.size()) + 1;
      helpers_.emplace_back([this, number] { help(number); });
    }
  } catch (const std::system_error &) { // no more threads: the run has fewer
    num_threads = static_cast<int>(helpers_.size()) + 1;
  }
  if (num_threads <= 1)
    return;
  {
    std::lock_guard<std::mutex> lock(mutex_);
    size_.store(num_threads);
  }
  begun_.notify_all();
}

void Team::end() { size_.store(1); }

void Team::work(Function function, const void *context, int64_t num_chunks) {
  function_.store(function, std::memory_order_relaxed);
  context_.store(context, std::memory_order_relaxed);
  num_done_.store(0, std::memory_order_relaxed);
  uint64_t number = (phase_.load(std::memory_order_relaxed) >> 32) + 1;
  phase_.store(number << 32 | static_cast<uint64_t>(num_chunks), std::memory_order_release);
  while (take_chunk()) {
  }
  for (int spins = 0; num_done_.load(std::memory_order_acquire) < num_chunks; spins++) {
    if (spins < kSpins)
      pause();
    else
      sched_yield();
  }
}

// Do one chunk of the phase under way; returns false if none is left.
bool Team::take_chunk() {
  uint64_t phase = phase_.load(std::memory_order_acquire);
  for (;;) {
    uint64_t next = phase >> 16 & 0xFFFF, count = phase & 0xFFFF;
    if (next >= count)
      return false;
    if (!phase_.compare_exchange_weak(phase, phase + (1 << 16), std::memory_order_acq_rel, std::memory_order_acquire))
      continue;
    function_.load(std::memory_order_relaxed)(context_.load(std::memory_order_relaxed), static_cast<int64_t>(next));
    num_done_.fetch_add(1, std::memory_order_release);
    return true;
  }
}

void Team::help(int number) {
  int idle = 0;
  while (!ends_.load(std::memory_order_relaxed)) {
    if (number < size_.load(std::memory_order_relaxed) && take_chunk()) {
      idle = 0;
      continue;
    }
    if (++idle < kSpins) {
      pause();
      continue;
    }
    if (number < size_.load(std::memory_order_relaxed) || idle < kSpins + kYields) {
      sched_yield();
      continue;
    }
    std::unique_lock<std::mutex> lock(mutex_);
    begun_.wait(lock, [&] { return ends_.load() || number < size_.load(); });
    idle = 0;
  }
}

} // namespace dragoman
