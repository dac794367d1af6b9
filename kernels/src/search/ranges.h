// Errors of numbers out of range.
#pragma once

#include <cstdio>
#include <stdexcept>
#include <string>
#include <type_traits>

namespace dragoman {

template <typename Number> std::string number_text(Number number) {
  if constexpr (std::is_integral_v<Number>)
    return std::to_string(number);
  char text[32];
  std::snprintf(text, sizeof text, "%g", static_cast<double>(number));
  return text;
}

// Throws `std::invalid_argument` unless `low <= value <= high`, which NaN never is.
template <typename Number, typename Low, typename High>
void expect_between(const char *name, Number value, Low low, High high) {
  if (!(value >= low && value <= high))
    throw std::invalid_argument(std::string(name) + " is " + number_text(value) + ", allowed: " + number_text(low) +
                                " to " + number_text(high));
}

} // namespace dragoman
