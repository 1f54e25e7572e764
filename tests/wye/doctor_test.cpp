// The checks of `wye doctor`, each on a machine with one thing broken.
#include "wye/doctor.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "support/catch.hpp"
#include "support/skip.hpp"
#include "support/temporary_folder.hpp"
#include "wye/report.hpp"

using wye_tool::Finding;
using wye_tool::Machine;

namespace {

namespace fs = std::filesystem;

/// A machine with a good Vulkan driver, below a folder.
struct MadeUp {
  MadeUp() {
    put("/usr/share/vulkan/icd.d/lvp_icd.json", R"({"ICD": {"library_path": "libvulkan_lvp.so"}})");
    put("/sys/fs/cgroup/memory.max", "max\n");
    machine.root = folder / "root";
    machine.variable = [this](const char* name) -> std::optional<std::string> {
      const auto found = variables.find(name);
      return found == variables.end() ? std::nullopt : std::optional(found->second);
    };
    machine.refusal_of = [this](const std::string& library) -> std::optional<std::string> {
      if (libraries.contains(library)) return std::nullopt;
      return "there is no '" + fs::path(library).filename().string() + "'.";
    };
  }
  MadeUp(const MadeUp&) = delete;
  void put(const std::string& path, const std::string& content) const {
    const fs::path file = (folder / "root") + path;
    fs::create_directories(file.parent_path());
    std::ofstream(file) << content;
  }
  /// Returns the findings as "check: evidence", with paths as those of the machine.
  std::vector<std::string> findings() const {
    std::vector<std::string> texts;
    for (const Finding& finding : wye_tool::examine(machine)) {
      CHECK_FALSE(finding.remedy.empty());
      std::string text = finding.check + ": " + finding.evidence;
      for (std::size_t at; (at = text.find(machine.root)) != text.npos;) text.erase(at, machine.root.size());
      texts.push_back(text);
    }
    return texts;
  }

  TemporaryFolder folder;
  std::map<std::string, std::string> variables{{"HOME", "/home/user"}};
  std::set<std::string> libraries{"libvulkan.so.1", "libvulkan_lvp.so"};
  Machine machine;
};

using Texts = std::vector<std::string>;

wye::AdapterInfo card(bool usable) {
  wye::AdapterInfo adapter;
  adapter.id = "cuda:0";
  adapter.backend = "cuda";
  adapter.api = "CUDA 12.4";
  adapter.usable = usable;
  adapter.reason = "The driver is too old.";
  return adapter;
}

}  // namespace

TEST_CASE("a machine without a fault has no finding", "[doctor]") {
  CHECK(MadeUp().findings().empty());
  CHECK(wye_tool::text_of(std::vector<Finding>{}) == "Nothing is wrong.\n");
}

TEST_CASE("without the Vulkan loader, that is the finding", "[doctor]") {
  MadeUp made;
  made.libraries.erase("libvulkan.so.1");
  CHECK(made.findings() ==
        Texts{"vulkan-loader: The Vulkan loader cannot be opened: there is no 'libvulkan.so.1'."});
}

TEST_CASE("a Vulkan driver that is not there, or does not open, is named", "[doctor]") {
  MadeUp made;
  made.put("/etc/vulkan/icd.d/good.json", R"({"ICD": {"library_path": "../../../opt/libgood.so"}})");
  made.libraries.insert(made.machine.root + "/opt/libgood.so");
  CHECK(made.findings().empty());
  made.put("/home/user/.local/share/vulkan/icd.d/a.json", R"({"ICD": {"library_path": "/opt/liba.so"}})");
  made.put("/usr/local/share/vulkan/icd.d/b.json", "no JSON");
  CHECK(
      made.findings() ==
      Texts{"vulkan-driver: The Vulkan driver of '/home/user/.local/share/vulkan/icd.d/a.json' "
            "('/opt/liba.so') cannot be opened: there is no 'liba.so'.",
            "vulkan-driver: The Vulkan driver of '/usr/local/share/vulkan/icd.d/b.json' cannot be opened: It "
            "names no library."});
  made.variables["VK_ICD_FILENAMES"] = "/etc/vulkan/icd.d/good.json";  // the loader looks nowhere else
  CHECK(made.findings().empty());
  MadeUp empty;
  fs::remove_all(empty.machine.root + "/usr");
  CHECK(empty.findings() ==
        Texts{"vulkan-driver: The Vulkan loader finds no driver: there is no manifest in a "
              "folder 'vulkan/icd.d'."});
}

TEST_CASE("NVIDIA's driver without its Vulkan driver is a finding", "[doctor]") {
  MadeUp made;
  made.put("/proc/driver/nvidia/version", "NVRM version: 550.54");
  CHECK(made.findings() ==
        Texts{"nvidia-vulkan-driver: The kernel has NVIDIA's driver, and there is no Vulkan "
              "driver for it here."});
  made.put("/etc/vulkan/icd.d/nvidia_icd.json", R"({"ICD": {"library_path": "libGLX_nvidia.so.0"}})");
  made.libraries.insert("libGLX_nvidia.so.0");
  CHECK(made.findings().empty());
}

TEST_CASE("CUDA devices that cannot be used, and compilers newer than the driver, are findings", "[doctor]") {
  MadeUp made;
  made.machine.adapters = {card(false)};
  CHECK(made.findings().empty());  // a machine without a card needs no driver
  made.put("/dev/nvidiactl", "");
  made.put("/etc/vulkan/icd.d/nvidia_icd.json", R"({"ICD": {"library_path": "libvulkan_lvp.so"}})");
  CHECK(made.findings() == Texts{"cuda-driver: CUDA device 'cuda:0' cannot be used: The driver is too old."});
  made.machine.adapters = {card(true)};
  made.libraries.insert("libnvrtc.so.12");
  CHECK(made.findings().empty());
  made.libraries.insert("libnvrtc.so.13");
  CHECK(made.findings() == Texts{"nvrtc: The compiler 'libnvrtc.so.13' is newer than the driver of 'cuda:0' "
                                 "(CUDA 12.4), which may not load its code."});
}

TEST_CASE("a device node that the user cannot open is a finding", "[doctor]") {
  if (::geteuid() == 0) return wye::test::skip("root can open each file");
  MadeUp made;
  made.put("/dev/dri/renderD128", "");
  CHECK(made.findings().empty());
  fs::permissions(made.machine.root + "/dev/dri/renderD128", fs::perms::none);
  CHECK(made.findings() ==
        Texts{"device-permissions: The device '/dev/dri/renderD128' cannot be opened by this user."});
}

TEST_CASE("checks that a device has failed are findings", "[doctor]") {
  MadeUp made;
  wye::QualificationReport report{.device = "vulkan:0", .name = "H200", .driver = "NVIDIA 550"};
  report.checks = {{.name = "barriers", .state = wye::CheckState::passed}};
  made.machine.reports = {report};
  CHECK(made.findings().empty());
  report.checks.push_back({.name = "atomics", .state = wye::CheckState::failed, .detail = "3 is not 4"});
  made.machine.reports = {report};
  CHECK(made.findings() ==
        Texts{"qualification: Device 'vulkan:0' (H200, NVIDIA 550) has failed checks: atomics: 3 is not 4"});
}

TEST_CASE("folders that wye cannot use are findings", "[doctor]") {
  MadeUp made;
  const std::string good = made.folder / "cache";
  for (const std::string& path : {std::string(), good, good + "/a/b"}) {
    made.machine.cache_directory = path;
    CHECK(made.findings().empty());
  }
  fs::create_directory(good);
  CHECK(made.findings().empty());
  std::ofstream(made.folder / "file") << "x";
  made.machine.cache_directory = made.folder / "file/cache";
  CHECK(made.findings() == Texts{"cache-folder: The folder of the cache ('" + made.machine.cache_directory +
                                 "') cannot be created: '" + (made.folder / "file") + "' is no folder."});
  made.machine.cache_directory = "/proc/wye";  // a file system without room
  CHECK(made.findings().size() == 1);
  made.machine.cache_directory = "";
  made.machine.share_directory = "/proc/1";
  CHECK(made.findings().size() == 1);
  if (::geteuid() != 0) return wye::test::skip("this user cannot give folders to others");
  made.machine.share_directory = good;
  REQUIRE(::chown(good.c_str(), 12345, 12345) == 0);
  CHECK(made.findings() ==
        Texts{"share-folder: The folder of shared slots ('" + good + "') belongs to another user (12345)."});
}

TEST_CASE("a low limit of memory, another library and a wrong variable are findings", "[doctor]") {
  MadeUp made;
  made.put("/sys/fs/cgroup/memory.max", "536870912\n");
  CHECK(made.findings() == Texts{"memory-limit: The control group of this process has 512 MiB of memory "
                                 "(/sys/fs/cgroup/memory.max)."});
  made.put("/sys/fs/cgroup/memory.max", "1073741824\n");
  CHECK(made.findings().empty());
  made.machine.library.minor += 1;
  CHECK(made.findings().size() == 1);
  made.machine.library = made.machine.headers;
  made.machine.refusal_of_options = "Environment variable WYE_LANES ('x') is not a whole number.";
  CHECK(made.findings() == Texts{"options: Environment variable WYE_LANES ('x') is not a whole number."});
}
