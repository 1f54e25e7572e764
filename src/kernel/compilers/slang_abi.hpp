#pragma once
/// Declares the part of Slang's binary interface that wye calls, from slang.h. The library is
/// opened at run time; linking would require one release. Its objects are COM objects: their first
/// word points at a table of functions. Tables and enumerations only grow at their ends; these
/// entries have not changed since 2026.5.
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <utility>

namespace wye::inline v0::kernel::slang {

struct Object {
  void* const* table;
};
struct Blob : Object {};
struct GlobalSession : Object {};
struct Session : Object {};
struct Component : Object {};
struct EntryPoint : Component {};
struct Module : Component {};
struct Layout;     // of a program
struct Parameter;  // its layout
struct Variable;
struct Entry;       // an entry point of a layout
struct TypeLayout;  // of one target
struct Type;

/// Calls a function of an object's table by its index. Not a virtual call: Slang's objects lack the
/// type information that sanitizers check.
template <class Signature>
class Method;
template <class R, class Self, class... A>
class Method<R(Self*, A...)> {
 public:
  constexpr explicit Method(std::size_t place) : place_(place) {}
  constexpr std::size_t place() const { return place_; }
  R operator()(Self* self, A... arguments) const {
    return reinterpret_cast<R (*)(Self*, A...)>(self->table[place_])(self, arguments...);
  }

 private:
  std::size_t place_;
};

using Status = std::int32_t;  // negative: failed
inline constexpr Status ok = 0;
inline constexpr Status no_interface = static_cast<Status>(0x80004002);
inline constexpr Status not_found = static_cast<Status>(0x82000005);

struct Macro {
  const char* name;
  const char* value;
};
struct Option {
  std::int32_t name = 0;
  alignas(8) std::int32_t kind = 0;  // 0: number, 1: text
  std::int32_t number = 1;
  std::int32_t number1 = 0;
  const char* text = nullptr;
  const char* text1 = nullptr;
};
struct Target {
  std::size_t size = sizeof(Target);
  std::int32_t format = 0;
  std::uint32_t profile = 0;
  std::uint32_t flags = 1 << 10;  // SPIR-V directly
  std::uint32_t floating_point = 0;
  std::uint32_t line_directives = 0;
  bool scalar_layout = false;
  const Option* options = nullptr;
  std::uint32_t option_count = 0;
};
struct SessionOptions {
  std::size_t size = sizeof(SessionOptions);
  const Target* targets = nullptr;
  std::int64_t target_count = 0;
  std::uint32_t flags = 0;
  std::uint32_t matrix_layout = 1;  // row-major
  const char* const* search_paths = nullptr;
  std::int64_t search_path_count = 0;
  const Macro* macros = nullptr;
  std::int64_t macro_count = 0;
  Object* file_system = nullptr;
  bool effect_annotations = false;
  bool glsl = false;
  const Option* options = nullptr;
  std::uint32_t option_count = 0;
  bool skip_validation = false;
};
struct GlobalOptions {
  std::uint32_t size = sizeof(GlobalOptions);
  std::uint32_t api = 0;
  std::uint32_t language = 2025;
  bool glsl = false;
  std::uint32_t reserved[16] = {};
};
static_assert(sizeof(Option) == 40 && sizeof(Target) == 48 && sizeof(SessionOptions) == 96 &&
              sizeof(GlobalOptions) == 80);

inline constexpr std::int32_t format_spirv = 6, format_cuda = 17;
inline constexpr std::int32_t compiler_glslang = 3, compiler_spirv_opt = 11;
inline constexpr std::int32_t option_disable_warnings = 20, option_c_layout = 129, option_tabular = 143;
inline constexpr std::uint32_t stage_compute = 6, no_line_directives = 1;
inline constexpr std::int32_t language_cuda = 6;
inline constexpr std::int32_t kind_struct = 1, kind_matrix = 3, kind_vector = 4, kind_scalar = 5,
                              kind_resource = 7, kind_pointer = 18;
inline constexpr std::int32_t category_bytes = 8;
inline constexpr std::uint32_t rules_of_buffers = 2;

inline constexpr Method<std::uint32_t(Object*)> release{2};
inline constexpr Method<const char*(Blob*)> data{3};
inline constexpr Method<std::size_t(Blob*)> size{4};
inline constexpr Method<Status(GlobalSession*, const SessionOptions*, Session**)> create_session{3};
inline constexpr Method<void(GlobalSession*, std::int32_t compiler, const char* folder)> set_compiler_path{5};
inline constexpr Method<void(GlobalSession*, std::int32_t language, const char* text)> set_prelude{11};
inline constexpr Method<void(GlobalSession*, std::int32_t language, Blob** text)> prelude{12};
inline constexpr Method<Status(GlobalSession*, std::int32_t compiler)> check_compiler{18};
inline constexpr Method<Status(Session*, Component* const*, std::int64_t count, Component**, Blob** said)>
    compose{6};
inline constexpr Method<Module*(Session*, const char* name, const char* path, Blob* module, Blob** said)>
    load_module{16};
inline constexpr Method<Module*(Session*, const char* name, const char* path, const char* text, Blob** said)>
    load_text{20};
inline constexpr Method<Layout*(Component*, std::int64_t target, Blob** said)> layout{4};
inline constexpr Method<Status(Component*, std::int64_t entry, std::int64_t target, Blob** code, Blob** said)>
    entry_point_code{6};
inline constexpr Method<Status(Component*, Component** linked, Blob** said)> link{10};
inline constexpr Method<std::int32_t(Module*)> entry_point_count{18};
inline constexpr Method<Status(Module*, std::int32_t index, EntryPoint**)> entry_point{19};
inline constexpr Method<Status(Module*, Blob**)> serialize{20};
inline constexpr Method<Status(Module*, const char* name, std::uint32_t stage, EntryPoint**, Blob** said)>
    find_entry_point{25};

/// Owns one reference to an object.
template <class T>
class Ref {
 public:
  Ref() = default;
  explicit Ref(T* object) : object_(object) {}
  Ref(Ref&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  Ref& operator=(Ref&& other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~Ref() {
    if (object_) release(object_);
  }
  T* get() const { return object_; }
  explicit operator bool() const { return object_ != nullptr; }
  /// Returns the address that a call writes an object to. The reference must be empty.
  T** out() { return &object_; }

 private:
  T* object_ = nullptr;
};

inline std::string_view text_of(const Ref<Blob>& blob) {
  return blob ? std::string_view(data(blob.get()), size(blob.get())) : std::string_view();
}

}  // namespace wye::kernel::slang
