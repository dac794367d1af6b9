// Teams of threads under load: each chunk must run exactly once, and be seen by the thread that shares it out.
//
//     team_entry NUM_RUNS SEED [fork]
#include <cstdio>
#include <cstdlib>
#include <random>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>

#include "runtime/team.h"

using dragoman::Team;

namespace {

// Shares phases of `team` out among `num_threads`. Chunks write without synchronization, as the operators do.
bool run(Team &team, int num_threads, int num_phases, int most_chunks, std::mt19937 &random) {
  Team::Run of_threads(team, num_threads);
  std::vector<int64_t> counts(most_chunks), before(most_chunks);
  for (int phase = 0; phase < num_phases; ++phase) {
    const int64_t num_chunks = random() % (most_chunks + 1);
    before.swap(counts);
    std::fill(counts.begin(), counts.end(), 0);
    // What a chunk writes depends on what others wrote in the phase before.
    team.share(num_chunks, [&](int64_t chunk) { counts[chunk] += 1 + before[most_chunks - 1 - chunk] % 2; });
    for (int64_t chunk = 0; chunk < most_chunks; ++chunk) {
      const int64_t expected = chunk < num_chunks ? 1 + before[most_chunks - 1 - chunk] % 2 : 0;
      if (counts[chunk] != expected) {
        std::printf("chunk %ld of %ld: %ld, expected is %ld\n", static_cast<long>(chunk), static_cast<long>(num_chunks),
                    static_cast<long>(counts[chunk]), static_cast<long>(expected));
        return false;
      }
    }
  }
  return true;
}

bool run_often(int num_runs, unsigned seed) {
  std::mt19937 random(seed);
  bool is_right = true;
  for (int number = 0; number < num_runs && is_right; ++number) {
    const int num_threads = static_cast<int>(random() % 10) - 1; // also none, and more than there are CPUs
    const int most_chunks = number == num_runs / 2 ? 200'000 : number % 4 == 0 ? 1000 : 12;
    is_right = run(Team::of_this_thread(), num_threads, 1 + random() % 40, most_chunks, random);
    if (random() % 16 == 0)
      usleep(random() % 3000); // long enough for helpers to fall asleep
  }
  return is_right;
}

// A child of a thread that has a team must be able to share work out, and to end.
bool forks() {
  const pid_t child = fork();
  if (child == 0)
    std::exit(run_often(20, 1) ? 0 : 1); // ends this thread's team
  int status = 1;
  return waitpid(child, &status, 0) == child && WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

} // namespace

int main(int count, char **arguments) {
  const int num_runs = std::atoi(arguments[1]);
  const unsigned seed = static_cast<unsigned>(std::atoi(arguments[2]));
  std::vector<char> is_right(4);
  std::vector<std::thread> callers;
  for (unsigned caller = 0; caller < is_right.size(); ++caller)
    callers.emplace_back([&, caller] { is_right[caller] = run_often(num_runs, seed + caller); });
  bool all_right = run_often(num_runs, seed - 1);
  for (std::thread &caller : callers)
    caller.join();
  for (char each : is_right)
    all_right = all_right && each;
  if (count > 3)
    all_right = all_right && forks();
  {
    Team unused;
    Team ends_at_once;
    Team::Run of_threads(ends_at_once, 3);
  }
  return all_right ? 0 : 1;
}
