// AVX2 without VNNI: Intel since Haswell, AMD since Zen. Compile with -mavx2 -mfma
#include "compute/ymm.h"

#include "compute/columns.h"
#include "compute/narrow_products.h"

#include "compute/table.h"
#include "compute/tables.h"

namespace dragoman {
extern const Compute kAvx2 = make_table("avx2");
}
