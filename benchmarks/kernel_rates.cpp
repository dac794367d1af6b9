// Measures the arithmetic of `kernels/src/compute` on one thread: products by shape and rows, beside what registers
// alone and memory alone can do. Prints one line per measurement: kind, K, N, rows, best seconds of a call, operations.
//
//     kernel_rates LIBRARY INSTRUCTION_SET ROUNDS
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <dlfcn.h>
#include <utility>
#include <vector>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "compute/compute.h"
#include "runtime/memory.h"

using namespace dragoman;

namespace {

double now() {
  timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

// A number of the distribution that weights and inputs of a layer have: a standard deviation of half of `spread`.
int bell(uint32_t &state, int spread) {
  int sum = 0;
  for (int i = 0; i < 3; ++i) {
    state = state * 1664525u + 1013904223u;
    sum += static_cast<int>(state >> 16) % (2 * spread) - spread;
  }
  return std::clamp(sum / 2, -127, 127);
}

// The best of some rounds: the machine may be busy with something else.
template <typename Body> double best(int rounds, const Body &body) {
  double seconds = 1e9;
  for (int round = 0; round < rounds; ++round) {
    const double began = now();
    body();
    seconds = std::min(seconds, now() - began);
  }
  return seconds;
}

#if defined(__x86_64__)
// Products of registers with registers: twelve sums that do not wait for each other.
__attribute__((target("avx512f,avx512vnni"))) int64_t multiply_registers(int64_t count) {
  const __m512i a = _mm512_set1_epi8(3), b = _mm512_set1_epi8(5), zero = _mm512_setzero_si512();
  __m512i s0 = zero, s1 = zero, s2 = zero, s3 = zero, s4 = zero, s5 = zero;
  __m512i s6 = zero, s7 = zero, s8 = zero, s9 = zero, s10 = zero, s11 = zero;
  for (int64_t i = 0; i < count; ++i) { // in assembly: a compiler would leave out what nobody reads
#define DRAGOMAN_MULTIPLY(sum) asm volatile("vpdpbusd %2, %1, %0" : "+v"(sum) : "v"(a), "v"(b))
    DRAGOMAN_MULTIPLY(s0);
    DRAGOMAN_MULTIPLY(s1);
    DRAGOMAN_MULTIPLY(s2);
    DRAGOMAN_MULTIPLY(s3);
    DRAGOMAN_MULTIPLY(s4);
    DRAGOMAN_MULTIPLY(s5);
    DRAGOMAN_MULTIPLY(s6);
    DRAGOMAN_MULTIPLY(s7);
    DRAGOMAN_MULTIPLY(s8);
    DRAGOMAN_MULTIPLY(s9);
    DRAGOMAN_MULTIPLY(s10);
    DRAGOMAN_MULTIPLY(s11);
  }
  return count * 12 * 64;
}
bool has_vnni() { return __builtin_cpu_supports("avx512vnni"); }
#else
int64_t multiply_registers(int64_t) { return 0; }
bool has_vnni() { return false; }
#endif

void measure_product(const Compute &compute, int32_t inputs, int32_t outputs, int64_t rows, int rounds) {
  Dense dense{};
  dense.num_inputs = inputs;
  dense.num_outputs = outputs;
  dense.num_groups = inputs / 4;
  dense.num_blocks = outputs / 64;
  Array<int8_t> weights(int64_t{inputs} * outputs);
  Array<float> scales(outputs), biases(outputs), y(rows * outputs);
  Array<int32_t> offsets(outputs);
  Array<uint16_t> order(order_size(dense.num_blocks, dense.num_groups));
  Array<uint8_t> levels(rows * inputs);
  Array<float> row_scales(rows);
  dense.zero_point = kZero;
  uint32_t state = 1;
  for (int64_t i = 0; i < weights.size(); ++i) weights[i] = static_cast<int8_t>(bell(state, 84));
  for (int64_t i = 0; i < levels.size(); ++i) levels[i] = static_cast<uint8_t>(kZero + bell(state, 84));
  dense.weights = weights.data();
  dense.scales = scales.data();
  dense.biases = biases.data();
  compute.prepare(dense, offsets.data(), order.data());
  const Levels x = {levels.data(), inputs, row_scales.data()};
  const double seconds = best(rounds, [&] { compute.dense(dense, x, rows, Into::kSet, y.data(), outputs); });
  std::printf("product %d %d %ld %.9f %ld\n", inputs, outputs, static_cast<long>(rows), seconds,
              static_cast<long>(weights.size() * rows));
}

void measure_memory(int64_t bytes, int rounds) {
  Array<int64_t> data(bytes / 8);
  for (int64_t i = 0; i < data.size(); ++i) data[i] = i;
  const double seconds = best(rounds, [&] {
    int64_t sums[8] = {};
    for (int64_t i = 0; i + 8 <= data.size(); i += 8)
      for (int j = 0; j < 8; ++j) sums[j] += data[i + j];
    volatile int64_t keep = sums[0] + sums[1] + sums[2] + sums[3] + sums[4] + sums[5] + sums[6] + sums[7];
    static_cast<void>(keep);
  });
  std::printf("read 0 0 0 %.9f %ld\n", seconds, static_cast<long>(bytes));
}

} // namespace

int main(int count, char **arguments) {
  if (count != 4) {
    std::fprintf(stderr, "usage: kernel_rates LIBRARY INSTRUCTION_SET ROUNDS\n");
    return 2;
  }
  void *library = dlopen(arguments[1], RTLD_NOW);
  if (library == nullptr) {
    std::fprintf(stderr, "%s\n", dlerror());
    return 1;
  }
  const auto find = reinterpret_cast<const Compute *(*)(const char *)>(dlsym(library, "dragoman_compute"));
  const Compute &compute = *find(arguments[2]);
  const int rounds = std::atoi(arguments[3]);
  for (int64_t bytes : {int64_t{256} << 10, int64_t{2} << 20, int64_t{16} << 20, int64_t{128} << 20})
    measure_memory(bytes, rounds);
  if (has_vnni()) {
    int64_t products = 0;
    const double seconds = best(rounds, [&] { products = multiply_registers(20'000); });
    std::printf("registers 0 0 0 %.9f %ld\n", seconds, static_cast<long>(products));
  }
  const std::pair<int32_t, int32_t> shapes[] = {{256, 768},  {256, 1024}, {1024, 256},  {256, 8192},
                                                {512, 1536}, {512, 2048}, {2048, 512}, {512, 32000},
                                                {1024, 4096}, {4096, 1024}, {1024, 58000}};
  for (const auto &[inputs, outputs] : shapes)
    for (int64_t rows : {1, 2, 4, 8, 16, 32, 200}) measure_product(compute, inputs, outputs, rows, rounds);
}
