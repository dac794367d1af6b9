// What the kernels use of zig's C++ library. Zig would compile all of it, one file after the other, which takes over a
// minute; this takes seconds. Linked with zig only, and if it lacks something, the whole library is linked instead.
#include <libcxxabi/src/abort_message.cpp>
#include <libcxxabi/src/fallback_malloc.cpp>

#include <libcxxabi/src/cxa_aux_runtime.cpp>
#include <libcxxabi/src/cxa_default_handlers.cpp>
#include <libcxxabi/src/cxa_exception.cpp>
#include <libcxxabi/src/cxa_exception_storage.cpp>
#include <libcxxabi/src/cxa_guard.cpp>
#include <libcxxabi/src/cxa_handlers.cpp>
#include <libcxxabi/src/cxa_personality.cpp>
#include <libcxxabi/src/cxa_vector.cpp>
#include <libcxxabi/src/cxa_virtual.cpp>
#include <libcxxabi/src/private_typeinfo.cpp>
#include <libcxxabi/src/stdlib_exception.cpp>
#include <libcxxabi/src/stdlib_new_delete.cpp>
#include <libcxxabi/src/stdlib_stdexcept.cpp>
#include <libcxxabi/src/stdlib_typeinfo.cpp>

#include <libcxx/src/algorithm.cpp>
#include <libcxx/src/functional.cpp>
#include <libcxx/src/hash.cpp>
#include <libcxx/src/new_handler.cpp>
#include <libcxx/src/stdexcept.cpp>
#include <libcxx/src/string.cpp>
#include <libcxx/src/vector.cpp>
#include <libcxx/src/verbose_abort.cpp>
