#include "backend/cuda/cuda_error.hpp"

#include <algorithm>
#include <iterator>
#include <utility>

namespace wye::inline v0::cuda {
namespace {

/// Sorted by number. `process`: cuda.h says that "the process must be terminated and relaunched".
/// `device`: the context cannot be used afterwards, or cuda.h does not say that it can. Codes are
/// numbers because older headers lack some of their names.
constexpr ResultMeaning rows[] = {
    {static_cast<CUresult>(1), Errc::invalid_argument, Reach::call, "CUDA_ERROR_INVALID_VALUE"},
    {static_cast<CUresult>(2), Errc::out_of_memory, Reach::memory, "CUDA_ERROR_OUT_OF_MEMORY"},
    {static_cast<CUresult>(3), Errc::unavailable, Reach::call, "CUDA_ERROR_NOT_INITIALIZED"},
    {static_cast<CUresult>(4), Errc::device_lost, Reach::device, "CUDA_ERROR_DEINITIALIZED"},
    {static_cast<CUresult>(5), Errc::invalid_argument, Reach::call, "CUDA_ERROR_PROFILER_DISABLED"},
    {static_cast<CUresult>(6), Errc::invalid_argument, Reach::call, "CUDA_ERROR_PROFILER_NOT_INITIALIZED"},
    {static_cast<CUresult>(7), Errc::invalid_argument, Reach::call, "CUDA_ERROR_PROFILER_ALREADY_STARTED"},
    {static_cast<CUresult>(8), Errc::invalid_argument, Reach::call, "CUDA_ERROR_PROFILER_ALREADY_STOPPED"},
    {static_cast<CUresult>(34), Errc::unavailable, Reach::call, "CUDA_ERROR_STUB_LIBRARY"},
    {static_cast<CUresult>(36), Errc::unavailable, Reach::call, "CUDA_ERROR_CALL_REQUIRES_NEWER_DRIVER"},
    {static_cast<CUresult>(46), Errc::unavailable, Reach::retry, "CUDA_ERROR_DEVICE_UNAVAILABLE"},
    {static_cast<CUresult>(100), Errc::unavailable, Reach::call, "CUDA_ERROR_NO_DEVICE"},
    {static_cast<CUresult>(101), Errc::not_found, Reach::call, "CUDA_ERROR_INVALID_DEVICE"},
    {static_cast<CUresult>(102), Errc::unavailable, Reach::call, "CUDA_ERROR_DEVICE_NOT_LICENSED"},
    {static_cast<CUresult>(200), Errc::compile_failed, Reach::call, "CUDA_ERROR_INVALID_IMAGE"},
    {static_cast<CUresult>(201), Errc::device_lost, Reach::device, "CUDA_ERROR_INVALID_CONTEXT"},
    {static_cast<CUresult>(202), Errc::invalid_argument, Reach::call, "CUDA_ERROR_CONTEXT_ALREADY_CURRENT"},
    {static_cast<CUresult>(205), Errc::invalid_argument, Reach::call, "CUDA_ERROR_MAP_FAILED"},
    {static_cast<CUresult>(206), Errc::invalid_argument, Reach::call, "CUDA_ERROR_UNMAP_FAILED"},
    {static_cast<CUresult>(207), Errc::invalid_argument, Reach::call, "CUDA_ERROR_ARRAY_IS_MAPPED"},
    {static_cast<CUresult>(208), Errc::invalid_argument, Reach::call, "CUDA_ERROR_ALREADY_MAPPED"},
    {static_cast<CUresult>(209), Errc::unsupported, Reach::call, "CUDA_ERROR_NO_BINARY_FOR_GPU"},
    {static_cast<CUresult>(210), Errc::invalid_argument, Reach::call, "CUDA_ERROR_ALREADY_ACQUIRED"},
    {static_cast<CUresult>(211), Errc::invalid_argument, Reach::call, "CUDA_ERROR_NOT_MAPPED"},
    {static_cast<CUresult>(212), Errc::invalid_argument, Reach::call, "CUDA_ERROR_NOT_MAPPED_AS_ARRAY"},
    {static_cast<CUresult>(213), Errc::invalid_argument, Reach::call, "CUDA_ERROR_NOT_MAPPED_AS_POINTER"},
    {static_cast<CUresult>(214), Errc::device_lost, Reach::device, "CUDA_ERROR_ECC_UNCORRECTABLE"},
    {static_cast<CUresult>(215), Errc::unsupported, Reach::call, "CUDA_ERROR_UNSUPPORTED_LIMIT"},
    {static_cast<CUresult>(216), Errc::invalid_argument, Reach::call, "CUDA_ERROR_CONTEXT_ALREADY_IN_USE"},
    {static_cast<CUresult>(217), Errc::unsupported, Reach::call, "CUDA_ERROR_PEER_ACCESS_UNSUPPORTED"},
    {static_cast<CUresult>(218), Errc::compile_failed, Reach::call, "CUDA_ERROR_INVALID_PTX"},
    {static_cast<CUresult>(219), Errc::invalid_argument, Reach::call, "CUDA_ERROR_INVALID_GRAPHICS_CONTEXT"},
    {static_cast<CUresult>(220), Errc::device_lost, Reach::device, "CUDA_ERROR_NVLINK_UNCORRECTABLE"},
    {static_cast<CUresult>(221), Errc::unavailable, Reach::call, "CUDA_ERROR_JIT_COMPILER_NOT_FOUND"},
    {static_cast<CUresult>(222), Errc::unsupported, Reach::call, "CUDA_ERROR_UNSUPPORTED_PTX_VERSION"},
    {static_cast<CUresult>(223), Errc::unavailable, Reach::call, "CUDA_ERROR_JIT_COMPILATION_DISABLED"},
    {static_cast<CUresult>(224), Errc::unsupported, Reach::call, "CUDA_ERROR_UNSUPPORTED_EXEC_AFFINITY"},
    {static_cast<CUresult>(225), Errc::unsupported, Reach::call, "CUDA_ERROR_UNSUPPORTED_DEVSIDE_SYNC"},
    {static_cast<CUresult>(226), Errc::device_lost, Reach::process, "CUDA_ERROR_CONTAINED"},
    {static_cast<CUresult>(300), Errc::compile_failed, Reach::call, "CUDA_ERROR_INVALID_SOURCE"},
    {static_cast<CUresult>(301), Errc::not_found, Reach::call, "CUDA_ERROR_FILE_NOT_FOUND"},
    {static_cast<CUresult>(302), Errc::not_found, Reach::call, "CUDA_ERROR_SHARED_OBJECT_SYMBOL_NOT_FOUND"},
    {static_cast<CUresult>(303), Errc::unavailable, Reach::call, "CUDA_ERROR_SHARED_OBJECT_INIT_FAILED"},
    {static_cast<CUresult>(304), Errc::unavailable, Reach::call, "CUDA_ERROR_OPERATING_SYSTEM"},
    {static_cast<CUresult>(400), Errc::invalid_argument, Reach::call, "CUDA_ERROR_INVALID_HANDLE"},
    {static_cast<CUresult>(401), Errc::invalid_argument, Reach::call, "CUDA_ERROR_ILLEGAL_STATE"},
    {static_cast<CUresult>(402), Errc::invalid_argument, Reach::call, "CUDA_ERROR_LOSSY_QUERY"},
    {static_cast<CUresult>(500), Errc::not_found, Reach::call, "CUDA_ERROR_NOT_FOUND"},
    {static_cast<CUresult>(600), Errc::timed_out, Reach::retry, "CUDA_ERROR_NOT_READY"},
    {static_cast<CUresult>(700), Errc::device_lost, Reach::process, "CUDA_ERROR_ILLEGAL_ADDRESS"},
    {static_cast<CUresult>(701), Errc::unsupported, Reach::call, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES"},
    {static_cast<CUresult>(702), Errc::device_lost, Reach::process, "CUDA_ERROR_LAUNCH_TIMEOUT"},
    {static_cast<CUresult>(703), Errc::unsupported, Reach::call, "CUDA_ERROR_LAUNCH_INCOMPATIBLE_TEXTURING"},
    {static_cast<CUresult>(704), Errc::invalid_argument, Reach::call,
     "CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED"},
    {static_cast<CUresult>(705), Errc::invalid_argument, Reach::call, "CUDA_ERROR_PEER_ACCESS_NOT_ENABLED"},
    {static_cast<CUresult>(708), Errc::invalid_argument, Reach::call, "CUDA_ERROR_PRIMARY_CONTEXT_ACTIVE"},
    {static_cast<CUresult>(709), Errc::device_lost, Reach::device, "CUDA_ERROR_CONTEXT_IS_DESTROYED"},
    {static_cast<CUresult>(710), Errc::device_lost, Reach::device, "CUDA_ERROR_ASSERT"},
    {static_cast<CUresult>(711), Errc::unavailable, Reach::call, "CUDA_ERROR_TOO_MANY_PEERS"},
    {static_cast<CUresult>(712), Errc::invalid_argument, Reach::call,
     "CUDA_ERROR_HOST_MEMORY_ALREADY_REGISTERED"},
    {static_cast<CUresult>(713), Errc::invalid_argument, Reach::call,
     "CUDA_ERROR_HOST_MEMORY_NOT_REGISTERED"},
    {static_cast<CUresult>(714), Errc::device_lost, Reach::process, "CUDA_ERROR_HARDWARE_STACK_ERROR"},
    {static_cast<CUresult>(715), Errc::device_lost, Reach::process, "CUDA_ERROR_ILLEGAL_INSTRUCTION"},
    {static_cast<CUresult>(716), Errc::device_lost, Reach::process, "CUDA_ERROR_MISALIGNED_ADDRESS"},
    {static_cast<CUresult>(717), Errc::device_lost, Reach::process, "CUDA_ERROR_INVALID_ADDRESS_SPACE"},
    {static_cast<CUresult>(718), Errc::device_lost, Reach::process, "CUDA_ERROR_INVALID_PC"},
    {static_cast<CUresult>(719), Errc::device_lost, Reach::process, "CUDA_ERROR_LAUNCH_FAILED"},
    {static_cast<CUresult>(720), Errc::unsupported, Reach::call, "CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE"},
    {static_cast<CUresult>(721), Errc::device_lost, Reach::process, "CUDA_ERROR_TENSOR_MEMORY_LEAK"},
    {static_cast<CUresult>(800), Errc::unavailable, Reach::call, "CUDA_ERROR_NOT_PERMITTED"},
    {static_cast<CUresult>(801), Errc::unsupported, Reach::call, "CUDA_ERROR_NOT_SUPPORTED"},
    {static_cast<CUresult>(802), Errc::unavailable, Reach::retry, "CUDA_ERROR_SYSTEM_NOT_READY"},
    {static_cast<CUresult>(803), Errc::unavailable, Reach::call, "CUDA_ERROR_SYSTEM_DRIVER_MISMATCH"},
    {static_cast<CUresult>(804), Errc::unavailable, Reach::call, "CUDA_ERROR_COMPAT_NOT_SUPPORTED_ON_DEVICE"},
    {static_cast<CUresult>(805), Errc::unavailable, Reach::retry, "CUDA_ERROR_MPS_CONNECTION_FAILED"},
    {static_cast<CUresult>(806), Errc::device_lost, Reach::device, "CUDA_ERROR_MPS_RPC_FAILURE"},
    {static_cast<CUresult>(807), Errc::unavailable, Reach::retry, "CUDA_ERROR_MPS_SERVER_NOT_READY"},
    {static_cast<CUresult>(808), Errc::unavailable, Reach::retry, "CUDA_ERROR_MPS_MAX_CLIENTS_REACHED"},
    {static_cast<CUresult>(809), Errc::unavailable, Reach::retry, "CUDA_ERROR_MPS_MAX_CONNECTIONS_REACHED"},
    {static_cast<CUresult>(810), Errc::device_lost, Reach::process, "CUDA_ERROR_MPS_CLIENT_TERMINATED"},
    {static_cast<CUresult>(811), Errc::unsupported, Reach::call, "CUDA_ERROR_CDP_NOT_SUPPORTED"},
    {static_cast<CUresult>(812), Errc::unsupported, Reach::call, "CUDA_ERROR_CDP_VERSION_MISMATCH"},
    {static_cast<CUresult>(900), Errc::kernel_failed, Reach::lane, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"},
    {static_cast<CUresult>(901), Errc::kernel_failed, Reach::lane, "CUDA_ERROR_STREAM_CAPTURE_INVALIDATED"},
    {static_cast<CUresult>(902), Errc::kernel_failed, Reach::lane, "CUDA_ERROR_STREAM_CAPTURE_MERGE"},
    {static_cast<CUresult>(903), Errc::kernel_failed, Reach::lane, "CUDA_ERROR_STREAM_CAPTURE_UNMATCHED"},
    {static_cast<CUresult>(904), Errc::kernel_failed, Reach::lane, "CUDA_ERROR_STREAM_CAPTURE_UNJOINED"},
    {static_cast<CUresult>(905), Errc::kernel_failed, Reach::lane, "CUDA_ERROR_STREAM_CAPTURE_ISOLATION"},
    {static_cast<CUresult>(906), Errc::kernel_failed, Reach::lane, "CUDA_ERROR_STREAM_CAPTURE_IMPLICIT"},
    {static_cast<CUresult>(907), Errc::kernel_failed, Reach::lane, "CUDA_ERROR_CAPTURED_EVENT"},
    {static_cast<CUresult>(908), Errc::kernel_failed, Reach::lane, "CUDA_ERROR_STREAM_CAPTURE_WRONG_THREAD"},
    {static_cast<CUresult>(909), Errc::timed_out, Reach::retry, "CUDA_ERROR_TIMEOUT"},
    {static_cast<CUresult>(910), Errc::unsupported, Reach::retry, "CUDA_ERROR_GRAPH_EXEC_UPDATE_FAILURE"},
    {static_cast<CUresult>(911), Errc::device_lost, Reach::process, "CUDA_ERROR_EXTERNAL_DEVICE"},
    {static_cast<CUresult>(912), Errc::unsupported, Reach::call, "CUDA_ERROR_INVALID_CLUSTER_SIZE"},
    {static_cast<CUresult>(913), Errc::unavailable, Reach::call, "CUDA_ERROR_FUNCTION_NOT_LOADED"},
    {static_cast<CUresult>(914), Errc::unsupported, Reach::call, "CUDA_ERROR_INVALID_RESOURCE_TYPE"},
    {static_cast<CUresult>(915), Errc::unsupported, Reach::call, "CUDA_ERROR_INVALID_RESOURCE_CONFIGURATION"},
    {static_cast<CUresult>(916), Errc::unavailable, Reach::call, "CUDA_ERROR_KEY_ROTATION"},
    {static_cast<CUresult>(999), Errc::device_lost, Reach::device, "CUDA_ERROR_UNKNOWN"},
};
constexpr ResultMeaning unknown_code = {CUDA_ERROR_UNKNOWN, Errc::device_lost, Reach::device, "CUresult"};

}  // namespace

std::span<const ResultMeaning> meanings() noexcept { return rows; }

const ResultMeaning& meaning(CUresult result) noexcept {
  const auto row = std::lower_bound(std::begin(rows), std::end(rows), result,
                                    [](const ResultMeaning& m, CUresult r) { return m.result < r; });
  return row != std::end(rows) && row->result == result ? *row : unknown_code;
}

std::string_view fault_description(CUresult result) noexcept {
  switch (static_cast<int>(result)) {
    case 700: return ": a kernel accessed an address outside the memory of the device";
    case 702: return ": a kernel exceeded the time limit of the system";
    case 710: return ": an assertion in a kernel failed";
    case 714: return ": a kernel's stack was damaged or too small";
    case 715: return ": a kernel executed an instruction that the device does not have";
    case 716: return ": a kernel accessed an address that is not a multiple of the access size";
    case 717: return ": a kernel accessed memory of a kind that the instruction does not support";
    case 718: return ": a kernel jumped to an address without code";
    default: return "";
  }
}

Error failure(CUresult result, std::string_view api, std::string sentence, Place place) {
  const ResultMeaning& m = meaning(result);
  return Error(m.code, std::move(sentence), NativeError{std::string(api), result, std::string(m.name)},
               place);
}

}  // namespace wye::cuda
