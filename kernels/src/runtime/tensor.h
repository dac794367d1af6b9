// Tensors that ONNX Runtime hands to an operator, checked before use.
#pragma once

#include <cstdint>
#include <initializer_list>
#include <string>
#include <vector>

#include "runtime/ort.h"

namespace dragoman {

// Memory that a run reads or writes, with a name for errors.
struct Memory {
  const char *name;
  const void *data;
  int64_t num_bytes;
};

// Throw if two of them share a byte: what was checked in one would change by writing to the other.
void require_apart(std::initializer_list<Memory> all);

struct Tensor {
  void *data = nullptr;
  ort::ElementType type = ort::kUndefined;
  std::vector<int64_t> shape;

  // Elements; throws unless no product of dimensions exceeds 2^56, those of empty tensors included.
  int64_t size() const;

  Memory memory(const char *name) const;

  // Return the data as `T`; throws `std::invalid_argument` naming `what` unless type and shape are as given and the
  // address is aligned. A negative dimension allows any.
  template <typename T> T *as(const char *what, ort::ElementType expected, const std::vector<int64_t> &dims) const {
    require(what, expected, dims);
    require_alignment(what, alignof(T));
    return static_cast<T *>(data);
  }

  void require(const char *what, ort::ElementType expected, const std::vector<int64_t> &dims) const;
  void require_alignment(const char *what, size_t alignment) const;
};

// Inputs and outputs of one run.
class Context {
public:
  Context(const ort::Api *api, ort::KernelContext *context) : api_(api), context_(context) {}
  void require_inputs(size_t count) const; // throws if the node has more or fewer
  Tensor input(size_t index) const;
  Tensor output(size_t index, const std::vector<int64_t> &shape) const;

private:
  const ort::Api *api_;
  ort::KernelContext *context_;
};

// The attributes and constants of a node. Constants are read one after the other.
class NodeInfo {
public:
  NodeInfo(const ort::Api *api, const ort::KernelInfo *info, size_t first_constant)
      : api_(api), info_(info), next_(first_constant) {}

  // Throws unless the attribute exists and lies within the bounds.
  int64_t integer(const char *name, int64_t low, int64_t high) const;
  // An attribute that nodes need not have, from 0 to `high`; one that is missing is 0.
  int64_t integer_or_zero(const char *name, int64_t high) const;
  bool flag(const char *name) const { return integer_or_zero(name, 1) != 0; }
  double number(const char *name, double low, double high) const;
  std::string text(const char *name) const;

  // The next constant, valid as long as the session; throws, naming `what`, if it is missing or of another form.
  Tensor constant(const char *what, ort::ElementType type, const std::vector<int64_t> &dims);

  // Pass over an input that is no constant.
  void skip() { next_++; }

  size_t next() const { return next_; }

private:
  Tensor at(const char *what, size_t index) const;

  const ort::Api *api_;
  const ort::KernelInfo *info_;
  size_t next_;
};

} // namespace dragoman
