// Chooses the functions that are fastest among those that this CPU can run. Compile with no flags of instruction sets.
#include <cstring>

#include "compute/tables.h"

#if defined(__x86_64__)
#include <cpuid.h>
#elif defined(__aarch64__) && defined(__linux__)
#include <sys/auxv.h>
#endif

namespace dragoman {
namespace {

struct Choice {
  const Compute *compute;
  bool runs;
};

#if defined(__x86_64__)

struct Registers {
  unsigned a = 0, b = 0, c = 0, d = 0;
};

Registers cpuid(unsigned leaf, unsigned part) {
  Registers found;
  __get_cpuid_count(leaf, part, &found.a, &found.b, &found.c, &found.d);
  return found;
}

// Whether the operating system saves the registers of these bits of XCR0.
bool saves(unsigned wanted) {
  constexpr unsigned kOsxsave = 1u << 27;
  if ((cpuid(1, 0).c & kOsxsave) == 0) return false;
  unsigned low, high;
  __asm__("xgetbv" : "=a"(low), "=d"(high) : "c"(0));
  return (low & wanted) == wanted;
}

const Choice *choices() {
  constexpr unsigned kYmm = 0x6, kZmm = 0xe6;
  constexpr unsigned kAvx2Bit = 1u << 5, kFma = 1u << 12, kAvxVnniBit = 1u << 4, kAvx512VnniBit = 1u << 11;
  constexpr unsigned kAvx512Bits = 1u << 16 | 1u << 17 | 1u << 30 | 1u << 31; // F, DQ, BW, VL
  const Registers base = cpuid(1, 0), extended = cpuid(7, 0), more = cpuid(7, 1);
  const bool avx2 = saves(kYmm) && (base.c & kFma) != 0 && (extended.b & kAvx2Bit) != 0;
  const bool avx512 = avx2 && saves(kZmm) && (extended.b & kAvx512Bits) == kAvx512Bits;
  static const Choice kChoices[] = {
      {&kAvx512Vnni, avx512 && (extended.c & kAvx512VnniBit) != 0},
      {&kAvxVnni, avx2 && (more.a & kAvxVnniBit) != 0},
      {&kAvx2, avx2},
      {&kPortable, true},
      {nullptr, false},
  };
  return kChoices;
}

#elif defined(__aarch64__) && defined(__linux__)

const Choice *choices() {
  constexpr unsigned long kAsimdDotProduct = 1ul << 20; // HWCAP_ASIMDDP
  static const Choice kChoices[] = {
      {&kNeonDot, (getauxval(AT_HWCAP) & kAsimdDotProduct) != 0},
      {&kPortable, true},
      {nullptr, false},
  };
  return kChoices;
}

#else

const Choice *choices() {
  static const Choice kChoices[] = {{&kPortable, true}, {nullptr, false}};
  return kChoices;
}

#endif

} // namespace

const Compute *find_compute(const char *name) {
  if (name == nullptr) return nullptr;
  const bool chooses = name[0] == '\0';
  for (const Choice *choice = choices(); choice->compute != nullptr; ++choice) {
    if (choice->runs && (chooses || strcmp(name, choice->compute->name) == 0)) return choice->compute;
  }
  return nullptr;
}

} // namespace dragoman

extern "C" const dragoman::Compute *dragoman_compute(const char *name) { return dragoman::find_compute(name); }
