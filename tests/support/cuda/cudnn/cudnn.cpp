// A stand-in for cuDNN: the functions that wye calls, for graphs of one attention. It refuses all
// that the documentation forbids. It also checks the addresses of tensors, which the library does
// not. It has three engines. The first gives different bits each time, and the second needs more
// workspace than wye offers. wye must take the third.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <vector>

#include "../library.hpp"

namespace {

enum Status {
  success = 0,
  not_initialized = 1001,
  bad_parameter = 2000,
  null_pointer = 2002,
  misaligned = 2003,
  not_finalized = 2004,
  bad_shape = 2008,
  duplicated = 2009,
  bad_type = 2010,
  not_supported = 3000,
  bad_layout = 3004,
  execution_failed = 5000
};
std::string& last_error() {
  thread_local std::string text;
  return text;
}
/// Returns the code, and remembers why.
int refuse(int code, const std::string& why) {
  last_error() = why;
  return code;
}

struct Handle {
  void* stream = nullptr;
};

/// Descriptors, attributes and types of values have the library's numbers.
enum Kind {
  engine = 2,
  engine_config = 3,
  heuristic = 4,
  plan = 5,
  graph = 15,
  pack = 16,
  tensor = 17,
  attention = 41,
  mask = 44
};
enum Type {
  of_handle,
  of_data_type,
  of_bool,
  of_int64,
  of_address = 6,
  of_mode = 8,
  of_note = 11,
  of_comparison = 14,
  of_descriptor
};
struct Attribute {
  int number;
  Kind owner;
  Type type;
  std::size_t least, most;  ///< how many values; none: it may be missing
};
constexpr Attribute attributes[] = {
    {200, heuristic, of_mode, 1, 1},        {201, heuristic, of_descriptor, 1, 1},
    {400, plan, of_handle, 1, 1},           {401, plan, of_descriptor, 1, 1},
    {800, graph, of_handle, 0, 1},          {801, graph, of_descriptor, 1, 1},
    {900, tensor, of_int64, 1, 1},          {901, tensor, of_data_type, 1, 1},
    {902, tensor, of_int64, 4, 4},          {903, tensor, of_int64, 4, 4},
    {906, tensor, of_int64, 1, 1},          {907, tensor, of_bool, 0, 1},
    {908, tensor, of_bool, 0, 1},           {1000, pack, of_int64, 1, 16},
    {1001, pack, of_address, 1, 16},        {1003, pack, of_address, 1, 1},
    {2800, attention, of_descriptor, 1, 1}, {2801, attention, of_descriptor, 1, 1},
    {2802, attention, of_descriptor, 1, 1}, {2803, attention, of_descriptor, 1, 1},
    {2805, attention, of_descriptor, 1, 1}, {2811, attention, of_descriptor, 0, 1},
    {2812, attention, of_int64, 0, 1},      {2813, attention, of_int64, 0, 1},
    {3000, mask, of_descriptor, 1, 1},      {3001, mask, of_descriptor, 0, 1},
    {3002, mask, of_descriptor, 0, 1},      {3005, mask, of_descriptor, 1, 1},
    {3006, mask, of_descriptor, 1, 1},      {3007, mask, of_comparison, 1, 1}};

std::size_t size_of(Type type) {
  return type == of_bool ? 1 : type == of_data_type || type == of_mode || type == of_comparison ? 4 : 8;
}

struct Descriptor {
  Kind kind;
  std::map<int, std::vector<char>> values = {};
  bool finalized = false;
  int number = 0;            ///< of an engine's configuration
  Descriptor* of = nullptr;  ///< the graph of a configuration

  bool has(int attribute) const { return values.count(attribute) != 0; }
  template <class T>
  T get(int attribute, std::size_t i = 0) const {
    return read<T>(values.at(attribute).data() + i * sizeof(T));
  }
  const Descriptor& object(int attribute) const { return *get<Descriptor*>(attribute); }
  std::int64_t id() const { return get<std::int64_t>(906); }
  std::int64_t dimension(std::size_t i) const { return get<std::int64_t>(902, i); }
  bool flag(int attribute) const { return has(attribute) && get<bool>(attribute); }
  int type() const { return get<int>(901); }
};
Descriptor* descriptor(void* object) { return static_cast<Descriptor*>(object); }

constexpr int type_float = 0, type_half = 2, type_int32 = 4, type_bfloat16 = 9;
constexpr int engines = 3, engine_that_differs = 0;
/// Bytes of workspace that each engine needs.
constexpr std::int64_t workspaces[engines] = {0, 1 << 20, 256};

bool is_value(const Descriptor& t, int type) {
  return t.flag(908) && !t.flag(907) && t.type() == type &&
         t.dimension(0) * t.dimension(1) * t.dimension(2) * t.dimension(3) == 1;
}

int finalize_tensor(const Descriptor& t) {
  std::int64_t step = 1;
  for (std::size_t i = 4; i-- > 0; step *= t.dimension(i)) {
    if (t.dimension(i) < 1) return refuse(bad_parameter, "a dimension is below 1");
    if (t.get<std::int64_t>(903, i) != step) return refuse(bad_layout, "strides are not those of rows");
  }
  if (t.flag(907) && t.flag(908)) return refuse(bad_parameter, "a value is virtual");
  if (t.get<std::int64_t>(900) != 16) return refuse(bad_parameter, "the alignment is not 16");
  return success;
}

int finalize_mask(const Descriptor& m) {
  const Descriptor &in = m.object(3000), &out = m.object(3006);
  for (const Descriptor* t : {&in, &out})
    if (!t->flag(907) || t->type() != type_float)
      return refuse(bad_parameter, "scores are not virtual float32");
  if (in.id() == out.id()) return refuse(duplicated, "the mask's input is its output");
  for (std::size_t i = 0; i < 4; ++i)
    if (in.dimension(i) != out.dimension(i)) return refuse(bad_shape, "the mask's input has another shape");
  if (!is_value(m.object(3005), type_float)) return refuse(bad_type, "the mask's value is no float32");
  if (m.has(3001) != m.has(3002)) return refuse(bad_parameter, "one length of two");
  for (const int length : {3001, 3002})
    if (m.has(length) && !is_value(m.object(length), type_int32))
      return refuse(bad_type, "a length is no int32");
  if (m.get<int>(3007) != 303) return refuse(not_supported, "the comparison is not >=");
  return success;
}

int finalize_attention(const Descriptor& a) {
  const Descriptor &q = a.object(2800), &k = a.object(2801), &v = a.object(2802), &out = a.object(2803);
  for (const Descriptor* t : {&q, &k, &v, &out}) {
    if (t->flag(907) || t->flag(908)) return refuse(bad_parameter, "an operand is no memory");
    if ((t->type() != type_half && t->type() != type_bfloat16) || t->type() != q.type())
      return refuse(bad_type, "operands are not all half or bfloat16");
    if (t->dimension(3) % 8 != 0 || t->dimension(3) > 256) return refuse(not_supported, "the head size");
    if (t->dimension(0) != 1 || t->dimension(1) != q.dimension(1) || t->dimension(1) > 65535)
      return refuse(bad_shape, "the heads");
  }
  if (k.dimension(3) != q.dimension(3) || out.dimension(3) != v.dimension(3) ||
      k.dimension(2) != v.dimension(2) || q.dimension(2) != out.dimension(2))
    return refuse(bad_shape, "the operands do not fit together");
  if (!is_value(a.object(2805), type_float)) return refuse(bad_type, "the scale is no float32");
  if (a.has(2811) != a.has(2812) || a.has(2811) != a.has(2813))
    return refuse(bad_parameter, "a graph within without its ends");
  if (!a.has(2811)) return success;
  const Descriptor& m = a.object(2811).object(801);
  if (m.kind != mask || a.object(2811).has(800)) return refuse(not_supported, "the graph within");
  if (m.object(3000).id() != a.get<std::int64_t>(2812) || m.object(3006).id() != a.get<std::int64_t>(2813))
    return refuse(bad_parameter, "the ends of the graph within");
  if (m.object(3000).dimension(0) != 1 || m.object(3000).dimension(1) != q.dimension(1) ||
      m.object(3000).dimension(2) != q.dimension(2) || m.object(3000).dimension(3) != k.dimension(2))
    return refuse(bad_shape, "the scores");
  if (q.dimension(2) > k.dimension(2)) return refuse(not_supported, "more queries than keys");
  return success;
}

/// Returns the tensors of an operation by their ids, with those of the graph within it.
std::map<std::int64_t, const Descriptor*> tensors_of(const Descriptor& operation) {
  std::map<std::int64_t, const Descriptor*> found;
  for (const auto& [attribute, bytes] : operation.values) {
    const auto known = std::find_if(std::begin(attributes), std::end(attributes),
                                    [n = attribute](const Attribute& a) { return a.number == n; });
    if (known->type != of_descriptor) continue;
    const Descriptor& object = operation.object(attribute);
    if (object.kind == tensor) found.emplace(object.id(), &object);
    if (object.kind == graph)
      for (const auto& [id, inner] : tensors_of(object.object(801))) found.emplace(id, inner);
  }
  return found;
}

int finalize_graph(const Descriptor& g) {
  const Descriptor& operation = g.object(801);
  if (operation.kind != attention && operation.kind != mask) return refuse(not_supported, "the operation");
  std::size_t count = operation.kind == attention ? 5 : 3;
  const Descriptor* const m = operation.kind == mask ? &operation
                              : operation.has(2811)  ? &operation.object(2811).object(801)
                                                     : nullptr;
  if (m && operation.kind == attention) count += 3;
  if (m && m->has(3001)) count += 2;
  if (tensors_of(operation).size() != count) return refuse(duplicated, "two tensors have one id");
  return success;
}

int finalize_pack(const Descriptor& p) {
  const std::size_t count = p.values.at(1000).size();
  if (p.values.at(1001).size() != count) return refuse(bad_parameter, "ids and addresses");
  std::map<std::int64_t, void*> all;
  for (std::size_t i = 0; i < count / 8; ++i)
    if (!all.emplace(p.get<std::int64_t>(1000, i), p.get<void*>(1001, i)).second)
      return refuse(duplicated, "an id twice");
  return success;
}

/// A call on the host, when the stream reaches it.
struct Work {
  bool bfloat, causal;
  std::size_t heads, queries, keys, head_size, value_size;
  std::int64_t ahead;  ///< query i keeps the keys up to i + ahead
  float scale, hidden;
  const char *q, *k, *v;
  std::uint16_t* out;
};
template <class T>
void attend(const Work& w) {
  const auto number = [&](const char* from) {
    return static_cast<float>(w.bfloat ? bfloat16_at(from) : half_at(from));
  };
  std::vector<float> scores(w.keys), sums(w.value_size);
  for (std::size_t row = 0; row < w.heads * w.queries; ++row) {
    const std::size_t head = row / w.queries * w.keys;
    float largest = -std::numeric_limits<float>::infinity(), all = 0;
    for (std::size_t j = 0; j < w.keys; ++j) {
      float sum = 0;
      for (std::size_t c = 0; c < w.head_size; ++c)
        sum += number(w.q + 2 * (row * w.head_size + c)) * number(w.k + 2 * ((head + j) * w.head_size + c));
      const bool keeps =
          !w.causal || static_cast<std::int64_t>(row % w.queries) + w.ahead >= static_cast<std::int64_t>(j);
      scores[j] = keeps ? sum : w.hidden;
      if (scores[j] > largest) largest = scores[j];
    }
    std::fill(sums.begin(), sums.end(), 0.0f);
    for (std::size_t j = 0; j < w.keys; ++j) {
      // As the library does: the largest score is that before scaling, and hidden keys count with a
      // weight of 0.
      const float weight = std::exp((scores[j] - largest) * w.scale);
      all += weight;
      const T rounded(weight);
      for (std::size_t c = 0; c < w.value_size; ++c)
        sums[c] += number(reinterpret_cast<const char*>(&rounded)) *
                   number(w.v + 2 * ((head + j) * w.value_size + c));
    }
    for (std::size_t c = 0; c < w.value_size; ++c) w.out[row * w.value_size + c] = T(sums[c] / all).bits;
  }
}
void run(void* data) {
  const std::unique_ptr<Work> work(static_cast<Work*>(data));
  work->bfloat ? attend<Sixteen<7>>(*work) : attend<Sixteen<10>>(*work);
}

bool is_on_device(const void* address, std::int64_t bytes) {
  return driver()->is_known(reinterpret_cast<std::uint64_t>(address), static_cast<std::size_t>(bytes)) != 0;
}

}  // namespace

WYE_EXPORT std::size_t cudnnGetVersion() {
  if (driver())
    if (const int version = driver()->scripted("cudnnGetVersion")) return static_cast<std::size_t>(version);
  const char* const version = std::getenv("WYE_STANDIN_CUDNN_VERSION");
  return version ? std::strtoul(version, nullptr, 10) : 92801;
}
WYE_EXPORT const char* cudnnGetErrorString(int status) {
  return status == success            ? "CUDNN_STATUS_SUCCESS"
         : status == not_initialized  ? "CUDNN_STATUS_NOT_INITIALIZED"
         : status == execution_failed ? "CUDNN_STATUS_EXECUTION_FAILED"
         : status / 1000 == 2         ? "CUDNN_STATUS_BAD_PARAM"
         : status / 1000 == 3         ? "CUDNN_STATUS_NOT_SUPPORTED"
                                      : nullptr;
}
WYE_EXPORT void cudnnGetLastErrorString(char* text, std::size_t size) {
  std::strncpy(text, last_error().c_str(), size);
  last_error().clear();
}
WYE_EXPORT int cudnnCreate(void** handle) {
  WYE_SCRIPTED("cudnnCreate");
  *handle = new Handle;
  return success;
}
WYE_EXPORT int cudnnDestroy(void* handle) {
  WYE_SCRIPTED("cudnnDestroy");
  delete static_cast<Handle*>(handle);
  return success;
}
WYE_EXPORT int cudnnSetStream(void* handle, void* stream) {
  WYE_SCRIPTED("cudnnSetStream");
  static_cast<Handle*>(handle)->stream = stream;
  return success;
}
WYE_EXPORT int cudnnBackendCreateDescriptor(int kind, void** made) {
  WYE_SCRIPTED("cudnnBackendCreateDescriptor");
  switch (kind) {
    case engine:
    case engine_config:
    case heuristic:
    case plan:
    case graph:
    case pack:
    case tensor:
    case attention:
    case mask: *made = new Descriptor{static_cast<Kind>(kind)}; return success;
    default: return refuse(not_supported, "a descriptor of kind " + std::to_string(kind));
  }
}
WYE_EXPORT int cudnnBackendDestroyDescriptor(void* object) {
  WYE_SCRIPTED("cudnnBackendDestroyDescriptor");
  delete descriptor(object);
  return success;
}
WYE_EXPORT int cudnnBackendSetAttribute(void* object, int number, int type, std::int64_t count,
                                        const void* values) {
  WYE_SCRIPTED("cudnnBackendSetAttribute");
  if (!object || !values) return refuse(null_pointer, "nullptr");
  Descriptor& of = *descriptor(object);
  const auto known = std::find_if(std::begin(attributes), std::end(attributes), [&](const Attribute& a) {
    return a.number == number && a.owner == of.kind;
  });
  if (known == std::end(attributes)) return refuse(bad_parameter, "attribute " + std::to_string(number));
  if (type != known->type) return refuse(bad_type, "the type of attribute " + std::to_string(number));
  if (count < static_cast<std::int64_t>(known->least) || count > static_cast<std::int64_t>(known->most))
    return refuse(bad_parameter, "the count of attribute " + std::to_string(number));
  if (of.finalized) return refuse(bad_parameter, "a descriptor is finalized");
  if (type == of_descriptor && !(*static_cast<Descriptor* const*>(values))->finalized)
    return refuse(not_finalized, "the value of attribute " + std::to_string(number) + " is not finalized");
  const char* const from = static_cast<const char*>(values);
  of.values[number].assign(from, from + static_cast<std::size_t>(count) * size_of(known->type));
  return success;
}
WYE_EXPORT int cudnnBackendFinalize(void* object) {
  WYE_SCRIPTED("cudnnBackendFinalize");
  Descriptor& of = *descriptor(object);
  if (of.finalized) return refuse(bad_parameter, "a descriptor is finalized twice");
  for (const Attribute& attribute : attributes)
    if (attribute.owner == of.kind && attribute.least != 0 && !of.has(attribute.number))
      return refuse(bad_parameter, "attribute " + std::to_string(attribute.number) + " is missing");
  int code = success;
  switch (of.kind) {
    case tensor: code = finalize_tensor(of); break;
    case mask: code = finalize_mask(of); break;
    case attention: code = finalize_attention(of); break;
    case graph: code = finalize_graph(of); break;
    case pack: code = finalize_pack(of); break;
    case heuristic:
      if (of.get<int>(200) != 3 || of.object(201).kind != graph ||
          of.object(201).object(801).kind != attention || !of.object(201).has(800))
        code = refuse(bad_parameter, "the graph of the heuristic");
      break;
    case plan:
      if (of.object(401).kind != engine_config) code = refuse(bad_parameter, "the configuration");
      break;
    default: code = refuse(bad_parameter, "a descriptor that the library makes"); break;
  }
  of.finalized = code == success;
  return code;
}
WYE_EXPORT int cudnnBackendGetAttribute(void* object, int number, int type, std::int64_t room,
                                        std::int64_t* count, void* values) {
  WYE_SCRIPTED("cudnnBackendGetAttribute");
  Descriptor& of = *descriptor(object);
  if (!of.finalized) return refuse(not_finalized, "a descriptor is not finalized");
  const auto set = [&](auto value) {
    if (room < 1) return refuse(bad_parameter, "no room for attribute " + std::to_string(number));
    std::memcpy(values, &value, sizeof(value));
    *count = 1;
    return int{success};
  };
  if (of.kind == heuristic && number == 202 && type == of_descriptor) {
    const char* const architecture = std::getenv("WYE_STANDIN_ARCHITECTURE");
    const std::int64_t all = architecture && std::atoi(architecture) < 80 ? 0 : engines;
    if (room == 0) {
      *count = all;
      return success;
    }
    *count = std::min(room, all);
    for (std::int64_t i = 0; i < *count; ++i) {
      Descriptor& config = *static_cast<Descriptor**>(values)[i];
      if (config.kind != engine_config) return refuse(bad_parameter, "a result that is no configuration");
      config.number = static_cast<int>(i);
      config.of = &const_cast<Descriptor&>(of.object(201));
      config.finalized = true;
    }
    return success;
  }
  if (of.kind == engine_config && number == 300 && type == of_descriptor) {
    Descriptor& found = **static_cast<Descriptor**>(values);
    if (found.kind != engine) return refuse(bad_parameter, "a result that is no engine");
    found.number = of.number;
    found.finalized = true;
    *count = 1;
    return success;
  }
  if (of.kind == engine && number == 1303 && type == of_note) {
    const int notes[] = {0, 4};  // tensor cores, other bits each time
    *count = of.number == engine_that_differs ? 2 : 1;
    if (room < *count) return refuse(bad_parameter, "no room for notes");
    std::memcpy(values, notes, static_cast<std::size_t>(*count) * sizeof(int));
    return success;
  }
  if (of.kind == plan && number == 402 && type == of_int64) return set(workspaces[of.object(401).number]);
  return refuse(bad_parameter, "attribute " + std::to_string(number));
}
WYE_EXPORT int cudnnBackendExecute(void* handle, void* the_plan, void* the_pack) {
  WYE_SCRIPTED("cudnnBackendExecute");
  if (!handle || !the_plan || !the_pack) return refuse(null_pointer, "nullptr");
  const Descriptor &what = *descriptor(the_plan), &with = *descriptor(the_pack);
  if (!what.finalized || !with.finalized) return refuse(not_finalized, "the plan or the pack");
  const Descriptor& config = what.object(401);
  const Descriptor& operation = config.of->object(801);
  if (what.get<void*>(400) != handle || config.of->get<void*>(800) != handle)
    return refuse(bad_parameter, "the plan of another handle");
  if (config.number == engine_that_differs)
    return refuse(execution_failed, "an engine that gives other bits");
  const auto tensors = tensors_of(operation);
  std::map<std::int64_t, const char*> at;
  for (std::size_t i = 0; i < with.values.at(1000).size() / 8; ++i)
    at[with.get<std::int64_t>(1000, i)] = with.get<const char*>(1001, i);
  for (const auto& [id, t] : tensors) {
    if (t->flag(907) ? at.count(id) != 0 : at.count(id) == 0 || !at.at(id))
      return refuse(bad_parameter, "the address of tensor " + std::to_string(id));
    if (t->flag(907)) continue;
    std::int64_t bytes = t->type() == type_float || t->type() == type_int32 ? 4 : 2;
    for (std::size_t i = 0; i < 4; ++i) bytes *= t->dimension(i);
    if (t->flag(908) ? is_on_device(at.at(id), 1) : !is_on_device(at.at(id), bytes)) {
      std::fprintf(stderr, "stand-in: tensor %ld of an attention lies elsewhere.\n", static_cast<long>(id));
      return refuse(execution_failed, "a tensor lies elsewhere");
    }
    if (!t->flag(908) && reinterpret_cast<std::uintptr_t>(at.at(id)) % 16 != 0)
      return refuse(misaligned, "tensor " + std::to_string(id));
  }
  const void* const workspace = with.get<const void*>(1003);
  if (const std::int64_t needed = workspaces[config.number];
      needed != 0 &&
      (!is_on_device(workspace, needed) || reinterpret_cast<std::uintptr_t>(workspace) % 128 != 0))
    return refuse(execution_failed, "the workspace");
  const Descriptor &q = operation.object(2800), &v = operation.object(2802);
  const Descriptor* m = operation.has(2811) ? &operation.object(2811).object(801) : nullptr;
  const auto address = [&](const Descriptor& t) { return at.at(t.id()); };
  const auto size = [](std::int64_t n) { return static_cast<std::size_t>(n); };
  std::int64_t ahead = 0;
  if (m && m->has(3001))
    ahead = std::int64_t{read<std::int32_t>(address(m->object(3001)))} -
            read<std::int32_t>(address(m->object(3002)));
  auto* work = new Work{q.type() == type_bfloat16,
                        m != nullptr,
                        size(q.dimension(1)),
                        size(q.dimension(2)),
                        size(v.dimension(2)),
                        size(q.dimension(3)),
                        size(v.dimension(3)),
                        ahead,
                        read<float>(address(operation.object(2805))),
                        m ? read<float>(address(m->object(3005))) : 0.0f,
                        address(q),
                        address(operation.object(2801)),
                        address(v),
                        reinterpret_cast<std::uint16_t*>(const_cast<char*>(address(operation.object(2803))))};
  if (driver()->enqueue(static_cast<Handle*>(handle)->stream, run, work) == 0) return success;
  delete work;
  return refuse(execution_failed, "the stream");
}
