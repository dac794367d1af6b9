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
#include <libcxxabi/src/cxa_thread_atexit.cpp>
#include <libcxxabi/src/cxa_vector.cpp>
#include <libcxxabi/src/cxa_virtual.cpp>
#include <libcxxabi/src/private_typeinfo.cpp>
#include <libcxxabi/src/stdlib_exception.cpp>
#include <libcxxabi/src/stdlib_new_delete.cpp>
#include <libcxxabi/src/stdlib_stdexcept.cpp>
#include <libcxxabi/src/stdlib_typeinfo.cpp>

#include <libcxx/src/condition_variable.cpp>
#include <libcxx/src/error_category.cpp>
#include <libcxx/src/future.cpp>
#include <libcxx/src/mutex.cpp>
#include <libcxx/src/new_handler.cpp>
#include <libcxx/src/stdexcept.cpp>
#include <libcxx/src/string.cpp>
#include <libcxx/src/system_error.cpp>
#include <libcxx/src/thread.cpp>
#include <libcxx/src/verbose_abort.cpp>

// As in condition_variable_destructor.cpp, which declares the class again.
std::condition_variable::~condition_variable() { std::__libcpp_condvar_destroy(&__cv_); }
