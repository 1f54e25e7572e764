// Attention by cuDNN, found at run time, through its graph interface: a graph of one operation,
// which the library has since 9.13.1. Causal masks are a graph within it, since 9.21. The numbers
// are those of its documentation (cuDNN 9).
#include "cudnn.hpp"

#include <wye/base/dynamic_library.hpp>

#include <algorithm>
#include <array>
#include <atomic>
#include <initializer_list>
#include <limits>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "cublas.hpp"

namespace wye::inline v0::workloads::cudnn {
namespace {

std::atomic<bool> absent{false};

/// Versions are numbers such as 91301 for 9.13.1.
constexpr std::size_t first_version = 91301, first_causal_version = 92100;

std::string to_string(std::size_t version) {
  return std::to_string(version / 10000) + "." + std::to_string(version / 100 % 100) + "." +
         std::to_string(version % 100);
}

/// The functions of the library. A handle and a descriptor are addresses.
class Library {
 public:
  static const Result<std::shared_ptr<const Library>>& shared() {
    static const Result<std::shared_ptr<const Library>> library = open();
    return library;
  }

  std::size_t (*version)() = nullptr;
  const char* (*error_name)(int) = nullptr;
  void (*last_error)(char*, std::size_t) = nullptr;
  int (*create)(void**) = nullptr;
  int (*destroy)(void*) = nullptr;
  int (*set_stream)(void*, void*) = nullptr;
  int (*create_descriptor)(int, void**) = nullptr;
  int (*destroy_descriptor)(void*) = nullptr;
  int (*set_attribute)(void*, int, int, std::int64_t, const void*) = nullptr;
  int (*get_attribute)(void*, int, int, std::int64_t, std::int64_t*, void*) = nullptr;
  int (*finalize)(void*) = nullptr;
  int (*execute)(void*, void*, void*) = nullptr;

  /// Makes the error of a status code that `api` returned.
  Error failed(const char* api, int status, std::string_view device) const;

 private:
  explicit Library(DynamicLibrary library) : library_(std::move(library)) {}
  static Result<std::shared_ptr<const Library>> open() {
    auto library = find();
    absent = !library;
    return library;
  }
  static Result<std::shared_ptr<const Library>> find() {
    auto opened = DynamicLibrary::open({"libcudnn.so.9"});
    if (!opened) return std::move(opened).error();
    Library library(*std::move(opened));
    cublas::Finder find(library.library_);
    find(library.version, "cudnnGetVersion");
    find(library.error_name, "cudnnGetErrorString");
    find(library.last_error, "cudnnGetLastErrorString");
    find(library.create, "cudnnCreate");
    find(library.destroy, "cudnnDestroy");
    find(library.set_stream, "cudnnSetStream");
    find(library.create_descriptor, "cudnnBackendCreateDescriptor");
    find(library.destroy_descriptor, "cudnnBackendDestroyDescriptor");
    find(library.set_attribute, "cudnnBackendSetAttribute");
    find(library.get_attribute, "cudnnBackendGetAttribute");
    find(library.finalize, "cudnnBackendFinalize");
    find(library.execute, "cudnnBackendExecute");
    if (auto error = find.error()) return *std::move(error);
    if (const std::size_t version = library.version(); version < first_version)
      return Error(Errc::unavailable, "Library '" + library.library_.name() + "' is cuDNN " +
                                          to_string(version) + ", which has no operation for attention (" +
                                          to_string(first_version) + " has).");
    return std::make_shared<const Library>(std::move(library));
  }
  DynamicLibrary library_;
};

/// The meaning of a status code. Thousands are its kind.
struct Meaning {
  Errc code;
  std::string_view words;
};
Meaning meaning_of(int status) {
  switch (status) {
    case 1008:
    case 3009: return {Errc::unavailable, "a library that it needs cannot be loaded"};
    case 3005:
    case 3006: return {Errc::unavailable, "it needs a newer driver"};
    case 3007: return {Errc::unsupported, "it does not support this device"};
    case 4003:
    case 4004: return {Errc::out_of_memory, "it has no memory left"};
    default: break;
  }
  switch (status / 1000) {
    case 1: return {Errc::unavailable, "it was not initialized"};
    case 2: return {Errc::internal, "an argument is invalid"};
    case 3: return {Errc::unsupported, "it does not support this"};
    case 4: return {Errc::kernel_failed, "an internal operation failed"};
    case 5: return {Errc::kernel_failed, "the device could not execute it"};
    default: return {Errc::kernel_failed, "it returned an unknown code"};
  }
}

Error refusal(Errc code, std::string_view device, std::string_view words) {
  return Error(code, "cuDNN cannot compute attention on device '" + std::string(device) +
                         "': " + std::string(words) + ".");
}

Error Library::failed(const char* api, int status, std::string_view device) const {
  const auto [code, words] = meaning_of(status);
  std::array<char, 512> details{};
  last_error(details.data(), details.size() - 1);
  std::string sentence(words);
  if (details[0] != '\0') sentence.append(" (").append(details.data()).append(")");
  const char* const name = error_name(status);
  return Error(code, refusal(code, device, sentence).sentence(),
               NativeError{api, status, name ? name : "unknown"});
}

/// The numbers of cudnnBackendDescriptorType_t, cudnnBackendAttributeType_t,
/// cudnnBackendAttributeName_t and others that are used here.
namespace kind {
enum Kind {
  engine = 2,
  engine_config = 3,
  heuristic = 4,
  plan = 5,
  graph = 15,
  pack = 16,
  tensor = 17,
  attention = 41,
  band_mask = 44
};
}  // namespace kind
namespace of {
enum Type {
  handle = 0,
  data_type = 1,
  boolean = 2,
  int64 = 3,
  address = 6,
  heuristic_mode = 8,
  numerical_note = 11,
  pointwise_mode = 14,
  descriptor = 15
};
}  // namespace of
namespace attribute {
enum Attribute {
  heuristic_mode = 200,
  heuristic_graph = 201,
  heuristic_results = 202,
  config_engine = 300,
  plan_handle = 400,
  plan_config = 401,
  plan_workspace = 402,
  graph_handle = 800,
  graph_operations = 801,
  tensor_alignment = 900,
  tensor_type = 901,
  tensor_dimensions = 902,
  tensor_strides = 903,
  tensor_id = 906,
  tensor_is_virtual = 907,
  tensor_is_value = 908,
  pack_ids = 1000,
  pack_addresses = 1001,
  pack_workspace = 1003,
  engine_notes = 1303,
  attention_q = 2800,
  attention_k = 2801,
  attention_v = 2802,
  attention_out = 2803,
  attention_scale = 2805,
  attention_graph = 2811,
  attention_graph_input = 2812,
  attention_graph_output = 2813,
  mask_scores = 3000,
  mask_keys = 3001,
  mask_queries = 3002,
  mask_value = 3005,
  mask_result = 3006,
  mask_comparison = 3007
};
}  // namespace attribute
constexpr int type_float = 0, type_half = 2, type_int32 = 4, type_bfloat16 = 9;
constexpr int greater_or_equal = 303, best_first = 3;
constexpr std::int64_t alignment = 16;

/// The numbers of tensors. `scores` and `masked` are in registers, the others from `scale` on
/// values of the host.
enum Id : std::int64_t {
  id_q = 1,
  id_k,
  id_v,
  id_out,
  id_scale,
  id_hidden,
  id_queries,
  id_keys,
  id_scores,
  id_masked
};

/// A descriptor, with the function that destroys it.
using Descriptor = std::unique_ptr<void, int (*)(void*)>;
using Dimensions = std::array<std::int64_t, 4>;

/// Makes and describes descriptors, until a call fails.
class Maker {
 public:
  Maker(const Library& library, std::string_view device) : library_(library), device_(device) {}

  void* make(kind::Kind kind) {
    void* made = nullptr;
    if (!error_) check("cudnnBackendCreateDescriptor", library_.create_descriptor(kind, &made));
    if (!error_) made_.emplace_back(made, library_.destroy_descriptor);
    return error_ ? nullptr : made;
  }
  template <class T>
  void set(void* object, attribute::Attribute attribute, of::Type type, std::span<const T> values) {
    if (!error_)
      check("cudnnBackendSetAttribute",
            library_.set_attribute(object, attribute, type, static_cast<std::int64_t>(values.size()),
                                   values.data()));
  }
  template <class T>
  void set(void* object, attribute::Attribute attribute, of::Type type, const T& value) {
    set(object, attribute, type, std::span<const T>(&value, 1));
  }
  /// Returns the number of values.
  template <class T>
  std::size_t get(void* object, attribute::Attribute attribute, of::Type type, std::span<T> values) {
    std::int64_t count = 0;
    if (!error_)
      check("cudnnBackendGetAttribute",
            library_.get_attribute(object, attribute, type, static_cast<std::int64_t>(values.size()), &count,
                                   values.empty() ? nullptr : values.data()));
    return error_ ? 0 : static_cast<std::size_t>(std::max<std::int64_t>(count, 0));
  }
  void finalize(void* object) {
    if (!error_) check("cudnnBackendFinalize", library_.finalize(object));
  }

  /// Makes a tensor, row after row.
  void* tensor(Id id, int type, const Dimensions& dimensions) {
    Dimensions strides{1, 1, 1, 1};
    for (std::size_t i = 3; i-- > 0;) strides[i] = strides[i + 1] * dimensions[i + 1];
    void* const made = make(kind::tensor);
    set(made, attribute::tensor_id, of::int64, std::int64_t{id});
    set(made, attribute::tensor_type, of::data_type, type);
    set(made, attribute::tensor_dimensions, of::int64, std::span<const std::int64_t>(dimensions));
    set(made, attribute::tensor_strides, of::int64, std::span<const std::int64_t>(strides));
    set(made, attribute::tensor_alignment, of::int64, alignment);
    if (id >= id_scores)
      set(made, attribute::tensor_is_virtual, of::boolean, true);
    else if (id >= id_scale)
      set(made, attribute::tensor_is_value, of::boolean, true);
    finalize(made);
    return made;
  }
  void* value(Id id, int type) { return tensor(id, type, {1, 1, 1, 1}); }
  /// Makes a graph of one operation.
  void* graph(void* handle, void* operation) {
    void* const made = make(kind::graph);
    if (handle) set(made, attribute::graph_handle, of::handle, handle);
    set(made, attribute::graph_operations, of::descriptor, operation);
    finalize(made);
    return made;
  }

  std::optional<Error>& error() { return error_; }
  std::vector<Descriptor> take() { return std::move(made_); }

 private:
  void check(const char* api, int status) {
    if (status) error_ = library_.failed(api, status, device_);
  }
  const Library& library_;
  std::string_view device_;
  std::vector<Descriptor> made_;
  std::optional<Error> error_;
};

/// Makes the graph within an attention that hides keys: query i keeps key j if i + keys - queries
/// >= j.
void* make_mask(Maker& make, const Attention& attention, const Dimensions& scores) {
  void* const mask = make.make(kind::band_mask);
  const auto set = [&](attribute::Attribute attribute, void* tensor) {
    make.set(mask, attribute, of::descriptor, tensor);
  };
  set(attribute::mask_scores, make.tensor(id_scores, type_float, scores));
  set(attribute::mask_result, make.tensor(id_masked, type_float, scores));
  set(attribute::mask_value, make.value(id_hidden, type_float));
  if (attention.queries != attention.keys) {
    set(attribute::mask_queries, make.value(id_queries, type_int32));
    set(attribute::mask_keys, make.value(id_keys, type_int32));
  }
  make.set(mask, attribute::mask_comparison, of::pointwise_mode, greater_or_equal);
  make.finalize(mask);
  return make.graph(nullptr, mask);
}

void* make_graph(Maker& make, void* handle, const Attention& attention) {
  const auto number = [](std::uint64_t n) { return static_cast<std::int64_t>(n); };
  const int type = attention.bfloat ? type_bfloat16 : type_half;
  const auto heads = [&](Id id, std::uint64_t rows, std::uint64_t columns) {
    return make.tensor(id, type, {1, number(attention.heads), number(rows), number(columns)});
  };
  void* const operation = make.make(kind::attention);
  const auto set = [&](attribute::Attribute attribute, void* object) {
    make.set(operation, attribute, of::descriptor, object);
  };
  set(attribute::attention_q, heads(id_q, attention.queries, attention.head_size));
  set(attribute::attention_k, heads(id_k, attention.keys, attention.head_size));
  set(attribute::attention_v, heads(id_v, attention.keys, attention.value_size));
  set(attribute::attention_out, heads(id_out, attention.queries, attention.value_size));
  set(attribute::attention_scale, make.value(id_scale, type_float));
  if (attention.causal) {
    const Dimensions scores{1, number(attention.heads), number(attention.queries), number(attention.keys)};
    set(attribute::attention_graph, make_mask(make, attention, scores));
    make.set(operation, attribute::attention_graph_input, of::int64, std::int64_t{id_scores});
    make.set(operation, attribute::attention_graph_output, of::int64, std::int64_t{id_masked});
  }
  make.finalize(operation);
  return make.graph(handle, operation);
}

/// Returns the configurations of engines for a graph, the best first.
std::vector<void*> find_configs(Maker& make, void* graph) {
  void* const heuristic = make.make(kind::heuristic);
  make.set(heuristic, attribute::heuristic_graph, of::descriptor, graph);
  make.set(heuristic, attribute::heuristic_mode, of::heuristic_mode, best_first);
  make.finalize(heuristic);
  constexpr std::size_t most = 8;
  std::vector<void*> configs(
      std::min(most, make.get(heuristic, attribute::heuristic_results, of::descriptor, std::span<void*>())));
  for (void*& config : configs) config = make.make(kind::engine_config);
  if (!configs.empty())
    configs.resize(std::min(configs.size(), make.get(heuristic, attribute::heuristic_results, of::descriptor,
                                                     std::span<void*>(configs))));
  return configs;
}

/// Returns whether an engine gives the same bits again, and neither rounds its inputs nor adds in
/// 16 bits.
bool is_exact(Maker& make, void* config) {
  std::array<void*, 1> engine{make.make(kind::engine)};
  make.get(config, attribute::config_engine, of::descriptor, std::span<void*>(engine));
  std::array<int, 16> notes{};
  const std::size_t count =
      make.get(engine[0], attribute::engine_notes, of::numerical_note, std::span<int>(notes));
  constexpr int rounds_inputs = 1, adds_in_less = 2, differs = 4;
  return std::none_of(
      notes.begin(),
      notes.begin() + std::min<std::ptrdiff_t>(std::ssize(notes), static_cast<std::ptrdiff_t>(count)),
      [](int note) { return note == rounds_inputs || note == adds_in_less || note == differs; });
}

/// A plan with all that it is made of.
struct Plan {
  std::vector<Descriptor> parts;
  void* object = nullptr;
  std::int64_t workspace = 0;
};

/// The handle of one lane, and its plans.
class Lane {
 public:
  static Result<std::shared_ptr<Lane>> create(std::shared_ptr<const Library> shared, const NativeLane& lane) {
    std::shared_ptr<Lane> made(new Lane(std::move(shared)));
    const Library& library = *made->library_;
    if (const int status = library.create(&made->handle_))
      return made->handle_ = nullptr, library.failed("cudnnCreate", status, lane.device);
    if (const int status = library.set_stream(made->handle_, lane.handle))
      return library.failed("cudnnSetStream", status, lane.device);
    return made;
  }
  Lane(const Lane&) = delete;
  ~Lane() {
    plans_.clear();
    if (handle_) (void)library_->destroy(handle_);
  }

  /// Checks that there is an engine for a small attention.
  Result<void> probe(std::string_view device, bool causal) const {
    Maker make(*library_, device);
    void* const graph = make_graph(
        make, handle_,
        {.causal = causal, .heads = 1, .queries = 64, .keys = 128, .head_size = 64, .value_size = 64});
    const bool any = !find_configs(make, graph).empty();
    if (make.error()) return *std::move(make.error());
    if (!any) return refusal(Errc::unsupported, device, "it has no engine for it");
    return {};
  }

  Result<void> attend(const NativeLane& lane, const Attention& attention, const Addresses& addresses,
                      float scale) {
    auto found = plans_.find(attention);
    if (found == plans_.end()) {
      auto plan = make_plan(lane.device, attention);
      if (!plan) return std::move(plan).error();
      found = plans_.emplace(attention, *std::move(plan)).first;
    }
    return execute(lane.device, found->second, attention, addresses, scale);
  }

 private:
  explicit Lane(std::shared_ptr<const Library> library) : library_(std::move(library)) {}

  /// Makes a plan of the best configuration that is exact and whose workspace suffices.
  Result<Plan> make_plan(std::string_view device, const Attention& attention) const {
    Maker make(*library_, device);
    const std::vector<void*> configs = find_configs(make, make_graph(make, handle_, attention));
    if (make.error()) return *std::move(make.error());
    std::optional<Error> why;
    for (void* const config : configs) {
      if (!is_exact(make, config)) {
        if (make.error()) return *std::move(make.error());
        continue;
      }
      Plan plan;
      plan.object = make.make(kind::plan);
      make.set(plan.object, attribute::plan_handle, of::handle, handle_);
      make.set(plan.object, attribute::plan_config, of::descriptor, config);
      make.finalize(plan.object);
      make.get(plan.object, attribute::plan_workspace, of::int64,
               std::span<std::int64_t>(&plan.workspace, 1));
      if (make.error()) {
        if (!why) why = std::move(make.error());
        make.error().reset();
      } else if (plan.workspace <= static_cast<std::int64_t>(workspace_size)) {
        plan.parts = make.take();
        return plan;
      }
    }
    if (why) return *std::move(why);
    return refusal(Errc::unsupported, device, "it has no engine for it");
  }

  Result<void> execute(std::string_view device, const Plan& plan, const Attention& attention,
                       const Addresses& addresses, float scale) const {
    float hidden = -std::numeric_limits<float>::infinity();
    auto queries = static_cast<std::int32_t>(attention.queries),
         keys = static_cast<std::int32_t>(attention.keys);
    // The library takes addresses of inputs as void*, too, and reads values of the host before it
    // returns.
    std::vector<std::int64_t> ids{id_q, id_k, id_v, id_out, id_scale};
    std::vector<const void*> pointers{addresses.q, addresses.k, addresses.v, addresses.out, &scale};
    const auto add = [&](Id id, const void* value) { ids.push_back(id), pointers.push_back(value); };
    if (attention.causal) add(id_hidden, &hidden);
    if (attention.causal && attention.queries != attention.keys)
      add(id_queries, &queries), add(id_keys, &keys);
    Maker make(*library_, device);
    void* const pack = make.make(kind::pack);
    make.set(pack, attribute::pack_ids, of::int64, std::span<const std::int64_t>(ids));
    make.set(pack, attribute::pack_addresses, of::address, std::span<const void* const>(pointers));
    make.set(pack, attribute::pack_workspace, of::address, addresses.workspace);
    make.finalize(pack);
    if (make.error()) return *std::move(make.error());
    if (const int status = library_->execute(handle_, plan.object, pack))
      return library_->failed("cudnnBackendExecute", status, device);
    return {};
  }

  std::shared_ptr<const Library> library_;
  void* handle_ = nullptr;
  std::map<Attention, Plan> plans_;  ///< at most `most_attentions`
};

Result<void> probe_with(const NativeLane& lane, bool causal) {
  const auto& library = Library::shared();
  if (!library) return library.error();
  if (const std::size_t version = (*library)->version(); causal && version < first_causal_version)
    return refusal(
        Errc::unavailable, lane.device,
        "causal masks need " + to_string(first_causal_version) + ", this is " + to_string(version));
  const auto made = Lane::create(*library, lane);
  if (!made) return made.error();
  return (*made)->probe(lane.device, causal);
}

}  // namespace

bool known_absent() { return absent; }

Result<void> probe(const NativeLane& lane) { return probe_with(lane, false); }
Result<void> probe_causal(const NativeLane& lane) { return probe_with(lane, true); }

bool takes(const Attention& attention) {
  constexpr std::uint64_t most_heads = 65535, most_elements = std::uint64_t{1} << 31, row = 8;
  const auto [bfloat, causal, heads, queries, keys, head_size, value_size] = attention;
  return heads > 0 && heads <= most_heads && queries > 0 && keys > 0 && (!causal || queries <= keys) &&
         head_size % row == 0 && value_size % row == 0 &&
         heads * std::max(queries, keys) * std::max(head_size, value_size) < most_elements;
}

bool admits(const Attention& attention) {
  static std::mutex mutex;
  static std::set<Attention> admitted;
  const std::lock_guard lock(mutex);
  if (admitted.size() == most_attentions) return admitted.find(attention) != admitted.end();
  return admitted.insert(attention), true;
}

Result<void> attend(const NativeLane& lane, const Attention& attention, const Addresses& addresses,
                    float scale) {
  const auto& library = Library::shared();
  if (!library) return library.error();
  // The library does not check these: its kernels would fail or compute nonsense.
  for (const void* address : {addresses.q, addresses.k, addresses.v, static_cast<const void*>(addresses.out)})
    if (reinterpret_cast<std::uintptr_t>(address) % alignment != 0)
      return refusal(Errc::internal, lane.device, "an address is not a multiple of 16");
  if (addresses.workspace_bytes < workspace_size)
    return refusal(Errc::internal, lane.device, "its workspace is too small");
  const auto kept = cublas::kept_by<Lane>(lane, "cuDNN", [&] { return Lane::create(*library, lane); });
  if (!kept) return kept.error();
  return (*kept)->attend(lane, attention, addresses, scale);
}

}  // namespace wye::workloads::cudnn
