// Threads that share the work of one run.
//
// A step has some twenty short phases, each a product or an attention, and each needs what the one before has computed.
// A helper that slept between them would take longer to wake than most of them last, so helpers poll while a run is
// under way, and sleep between runs. Work is handed out in chunks, and nobody waits for a helper that has none: one
// that the system has taken off its CPU delays a phase only if it holds a chunk.
#pragma once

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <mutex>
#include <thread>
#include <vector>

namespace dragoman {

class Team {
public:
  // The team of the calling thread; its helpers end with that thread. In a child of `fork`, which has none of them, it
  // is a new one.
  static Team &of_this_thread();

  Team() = default;
  Team(const Team &) = delete;
  ~Team();

  // A run of `num_threads` threads, the caller included. Runs do not nest.
  class Run {
  public:
    Run(Team &team, int num_threads) : team_(team) { team_.begin(num_threads); }
    Run(const Run &) = delete;
    ~Run() { team_.end(); }

  private:
    Team &team_;
  };

  int size() const { return size_; }

  // Call body(chunk) for every chunk in [0, num_chunks), on all threads of the run; returns when all are done.
  // `body` must not throw.
  template <typename Body> void share(int64_t num_chunks, const Body &body) {
    if (size_ == 1 || num_chunks <= 1) {
      for (int64_t chunk = 0; chunk < num_chunks; chunk++)
        body(chunk);
      return;
    }
    for (int64_t first = 0; first < num_chunks; first += kPhaseChunks) {
      const auto from_first = [&body, first](int64_t chunk) { body(first + chunk); };
      using FromFirst = decltype(from_first);
      work([](const void *context, int64_t chunk) { (*static_cast<FromFirst *>(context))(chunk); }, &from_first,
           std::min(num_chunks - first, kPhaseChunks));
    }
  }

private:
  using Function = void (*)(const void *, int64_t);
  static constexpr int64_t kPhaseChunks = 0xFFFF; // at most, in one phase: see `phase_`

  void begin(int num_threads);
  void end();
  void work(Function function, const void *context, int64_t num_chunks);
  bool take_chunk();
  void help(int number);

  // The phase under way: its number, the next chunk and how many there are, in one word, so that a chunk is taken from
  // the phase that was looked at or not at all. The rest is written before a phase begins, and not while a chunk of it
  // is under way.
  alignas(64) std::atomic<uint64_t> phase_{0};
  std::atomic<Function> function_{nullptr};
  std::atomic<const void *> context_{nullptr};
  alignas(64) std::atomic<int64_t> num_done_{0};
  alignas(64) std::atomic<int> size_{1}; // threads of the run under way; 1 between runs
  std::atomic<bool> ends_{false};
  std::mutex mutex_;
  std::condition_variable begun_;
  std::vector<std::thread> helpers_;
};

} // namespace dragoman
