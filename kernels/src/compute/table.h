// The table of one instruction set, made of the functions above it.
#pragma once

#include "compute/attention.h"
#include "compute/candidates.h"
#include "compute/products.h"
#include "compute/rows.h"

namespace dragoman {
namespace {

constexpr Compute make_table(const char *name) {
  return {name,   quantize, norm_rows, prepare, dense,     dense_activated, dense_arg_max, dense_columns,
          form_heads, append, attend, recur, embed, is_finite, log_sum, top};
}

} // namespace
} // namespace dragoman
