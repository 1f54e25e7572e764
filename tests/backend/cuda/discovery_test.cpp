// Discovery of devices, and the reasons for missing ones.
#include "backend/cuda/cuda_error.hpp"
#include "backend/cuda/stand_in.hpp"

namespace wye::test {
namespace {

/// The reason why there is no device.
std::string reason(const std::string& driver = WYE_STAND_IN_CUDA) {
  const auto found = discover(driver);
  REQUIRE(found.size() == 1);
  CHECK_FALSE(found[0].info.usable);
  CHECK(found[0].adapter == nullptr);
  CHECK(found[0].info.backend == "cuda");
  INFO(found[0].info.reason);
  CHECK(found[0].info.reason.find("internal") == std::string::npos);
  return found[0].info.reason;
}

bool has(const std::string& text, std::string_view part) {
  INFO(text << " / " << part);
  const bool there = text.find(part) != std::string::npos;
  CHECK(there);
  return there;
}

}  // namespace

TEST_CASE("a missing driver is a reason", "[cuda]") {
  has(reason("/nowhere/libcuda.so.1"), "not installed");
  has(reason("/nowhere/libcuda.so.1"), "/nowhere/libcuda.so.1");
}

TEST_CASE("a library that is no driver is a reason", "[cuda]") {
  has(reason("libm.so.6"), "libm.so.6");
  has(reason("libm.so.6"), "cuGetProcAddress_v2");
}

TEST_CASE("the error of cuInit is the reason, as a sentence", "[cuda]") {
  const StandIn stand_in;
  for (const auto& [code, words] :
       {std::pair{"34", "stub"}, std::pair{"100", "CUDA_VISIBLE_DEVICES"},
        std::pair{"803", "different versions"}, std::pair{"999", "CUDA_ERROR_UNKNOWN"}}) {
    const Setting init("WYE_STANDIN_INIT", code);
    const std::string why = reason();
    has(why, words);
    has(why, std::string("(") + code + ")");
  }
}

TEST_CASE("a driver that is too old is refused with both versions", "[cuda]") {
  const StandIn stand_in;
  for (const auto& [version, shown] :
       {std::pair{"12010", "12.1"}, std::pair{"11040", "11.4"}, std::pair{"12000", "12.0"}}) {
    const Setting old("WYE_STANDIN_VERSION", version);
    const std::string why = reason();
    has(why, shown);
    has(why, "12.2");
  }
}

TEST_CASE("the oldest driver there may be is enough", "[cuda]") {
  const StandIn stand_in;
  const Setting oldest("WYE_STANDIN_VERSION", "12020");
  const auto found = discover();
  REQUIRE(found.size() == 1);
  INFO(found[0].info.reason);
  REQUIRE(found[0].info.usable);
  CHECK(found[0].info.api == "CUDA 12.2");
  CHECK(found[0].adapter->open());
}

TEST_CASE("a device that writes no memory in the order of a stream is as good as any", "[cuda]") {
  const StandIn stand_in;
  const auto found = discover();
  REQUIRE(found.size() == 1);
  CHECK(found[0].info.usable);
  for (const char* function : {"cuStreamWriteValue32", "cuStreamWriteValue64", "cuStreamWaitValue32",
                               "cuStreamWaitValue64", "cuStreamBatchMemOp"})
    CHECK(stand_in.asked(function) == 0);
}

TEST_CASE("no devices, or a device that refuses contexts, is a reason", "[cuda]") {
  const StandIn stand_in;
  {
    const Setting none("WYE_STANDIN_DEVICES", "0");
    has(reason(), "no device");
  }
  const Setting prohibited("WYE_STANDIN_COMPUTE_MODE", "2");
  has(reason(), "forbids");
}

TEST_CASE("each device is described", "[cuda]") {
  const StandIn stand_in;
  const Setting two("WYE_STANDIN_DEVICES", "2");
  const auto found = discover();
  REQUIRE(found.size() == 2);
  CHECK(found[0].info.id == "cuda:0");
  CHECK(found[1].info.id == "cuda:1");
  CHECK(found[0].info.device_uuid != found[1].info.device_uuid);
  CHECK(found[0].info.architecture == "sm_90");
  CHECK(found[0].info.memory == 8_GiB);
  CHECK(found[0].info.limits.shared_memory == 227_KiB);
  CHECK(found[0].info.limits.subgroup_size == 32);
  CHECK(found[0].info.type == AdapterType::discrete);
}

TEST_CASE("CUDA_VISIBLE_DEVICES leaves the devices that it lists, in its order", "[cuda]") {
  const StandIn stand_in;
  const Setting four("WYE_STANDIN_DEVICES", "4");
  const auto last_bytes = [](const char* visible) {
    const Setting list("CUDA_VISIBLE_DEVICES", visible);
    std::string bytes;
    for (const auto& one : discover())
      if (one.info.usable) bytes += one.info.id + "=" + std::to_string(one.info.device_uuid[15]) + " ";
    return bytes;
  };
  CHECK(last_bytes("2,0") == "cuda:0=3 cuda:1=1 ");
  CHECK(last_bytes("GPU-57575757-5757-5757-5757-575757575704") == "cuda:0=4 ");
  CHECK(last_bytes("1,9,2") == "cuda:0=2 ");  // the rest of a list with a wrong entry counts for nothing
  CHECK(last_bytes("").empty());
}

TEST_CASE("a device that does not describe itself is a reason, and the others work", "[cuda]") {
  const StandIn stand_in;
  const Setting two("WYE_STANDIN_DEVICES", "2");
  stand_in.fail("cuDeviceGetUuid", 1, 999);
  const auto found = discover();
  REQUIRE(found.size() == 2);
  CHECK_FALSE(found[0].info.usable);
  has(found[0].info.reason, "cuDeviceGetUuid");
  CHECK(found[1].info.usable);
}

TEST_CASE("every function is loaded with the version of its current signature", "[cuda]") {
  const StandIn stand_in;
  REQUIRE(discover().size() == 1);
#define WYE_CHECK_ASKED(name, version) CHECK(stand_in.asked("cu" #name) == version);
  WYE_CUDA_FUNCTIONS(WYE_CHECK_ASKED)
  WYE_CUDA_NEWER_FUNCTIONS(WYE_CHECK_ASKED)
#undef WYE_CHECK_ASKED
}

TEST_CASE("the table of errors is sorted and complete, and marks fatal errors", "[cuda]") {
  using cuda::Reach;
  const auto rows = cuda::meanings();
  for (std::size_t i = 1; i < rows.size(); ++i) CHECK(rows[i - 1].result < rows[i].result);
  for (const cuda::ResultMeaning& row : rows) {
    INFO(row.name);
    CHECK(&cuda::meaning(row.result) == &row);
    CHECK((row.code == Errc::device_lost) == (row.reach >= Reach::device));
    CHECK((row.code == Errc::out_of_memory) == (row.reach == Reach::memory));
  }
  for (const int process : {226, 700, 702, 714, 715, 716, 717, 718, 719, 721, 810, 911})
    CHECK(cuda::meaning(static_cast<CUresult>(process)).reach == Reach::process);
  for (const int device : {214, 220, 709, 710, 999, 1000})
    CHECK(cuda::meaning(static_cast<CUresult>(device)).reach == Reach::device);
  for (const int call : {1, 200, 209, 218, 400, 701})
    CHECK(cuda::meaning(static_cast<CUresult>(call)).reach == Reach::call);
}

}  // namespace wye::test
