#include "insight.h"

#include <ATen/core/Tensor.h>
#include <pthread.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <mutex>
#include <unordered_map>
#include <unordered_set>

#include "aliases.h"
#include "export.h"
#include "memory.h"
#include "phase.h"
#include "places.h"
#include "tensors.h"
#include "work.h"

namespace emulator {

constexpr size_t kShapesShown = 100;   // of one record, as text
constexpr size_t kShapesKnown = 4000;  // of one record; what comes then is not noted

struct Sum {
  size_t calls = 0;
  double bytes = 0;
  double multiply_adds = 0;
  void add(const Sum& other) {
    calls += other.calls;
    bytes += other.bytes;
    multiply_adds += other.multiply_adds;
  }
};

struct Record {
  size_t number = 0;
  int place = -1;
  int phase = 0;
  int device = -1;
  std::string name;
  std::string types;     // of the tensors among the arguments
  std::string options;   // arguments that are not as they are without being given
  std::string crossing;  // of a copy between host and NPU
  bool by_truth = false; // an index of truth values
  Sum first;             // up to the end of the first step
  Sum later;             // in the steps after it
  Sum open;              // since the last step that ended
  int64_t open_in = 0;
  size_t seen_steps = 0;  // later steps in which it came
  std::unordered_map<uint64_t, std::string> arguments;  // shapes as text
  std::unordered_set<uint64_t> known;                   // shapes of arguments and results
  std::vector<std::string> shapes;
  size_t first_shapes = 0;  // how many of them the first step had
  size_t new_steps = 0;     // later steps that brought new ones
  size_t origins = 0;       // of these, those in which no operator had brought any before
  int64_t last_new = -1;
  bool last_was_origin = false;

  void close() {
    (open_in == 0 ? first : later).add(open);
    if (open_in > 0 && open.calls > 0) ++seen_steps;
    open = {};
  }
};

namespace {

using OnNewShapes = void (*)(size_t record);

std::mutex records_guard;
std::unordered_map<uint64_t, Record*> by_kind;
std::vector<std::unique_ptr<Record>> records;
std::atomic<int64_t> steps{0};  // that have ended
std::atomic<OnNewShapes> on_new_shapes{nullptr};
std::unordered_set<uint64_t> early_shapes;  // of single tensors, in the first step
int64_t last_origin = -1;

uint64_t mixed(uint64_t hash, uint64_t value) {
  hash ^= value + 0x9e3779b97f4a7c15ULL + (hash << 6) + (hash >> 2);
  return hash * 0xff51afd7ed558ccdULL;
}

uint64_t shape_of(const at::Tensor& tensor) {
  uint64_t hash = 1;
  for (const int64_t size : tensor.sizes()) hash = mixed(hash, static_cast<uint64_t>(size));
  return hash;
}

double bytes_of(const at::Tensor& tensor) {
  return static_cast<double>(tensor.numel()) * static_cast<double>(tensor.itemsize());
}

std::string options_of(const c10::FunctionSchema& schema, c10::ArrayRef<const c10::IValue> arguments) {
  std::string options;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const c10::IValue& value = arguments[i];
    const auto& usual = schema.arguments()[i].default_value();
    if (!usual || !(value.isBool() || value.isInt() || value.isDouble() || value.isString())) continue;
    if (value.tagKind() == usual->tagKind() && value == *usual) continue;
    options += (options.empty() ? "" : " ") + schema.arguments()[i].name();
    if (value.isBool()) options += value.toBool() ? "=True" : "=False";
    if (value.isInt()) options += "=" + std::to_string(value.toInt());
  }
  return options;
}

// Where a copy goes, if host and NPU have a part in it; `copy_(self, source, non_blocking)`.
const char* crossing(const std::string& name, c10::ArrayRef<const c10::IValue> arguments) {
  if (name != "aten::copy_") return "";
  const at::Tensor& to = arguments[0].toTensor();
  const at::Tensor& from = arguments[1].toTensor();
  if (on_npu(to) == on_npu(from)) return "";
  if (arguments[2].toBool()) return on_npu(to) ? "to_npu" : "to_host";
  return on_npu(to) ? "to_npu, blocking" : "to_host, blocking";
}

// Needs the lock.
Record& new_record(uint64_t kind, const std::string& name, int place, int phase) {
  auto record = std::make_unique<Record>();
  record->number = records.size();
  record->name = name;
  record->place = place;
  record->phase = phase;
  records.push_back(std::move(record));
  by_kind[kind] = records.back().get();
  return *records.back();
}

// Needs the lock.
void add(Record& record, const Sum& sum) {
  if (record.open_in != steps) {
    record.close();
    record.open_in = steps;
  }
  record.open.add(sum);
}

// Needs the lock. Returns whether Python is to note how the program came here.
bool add_shapes(Record& record, uint64_t hash, const std::string& text, const std::vector<uint64_t>& shapes,
                size_t arguments) {
  if (record.known.size() >= kShapesKnown || !record.known.insert(hash).second) return false;
  if (record.shapes.size() < kShapesShown) record.shapes.push_back(text);
  const int64_t step = steps;
  if (step == 0) {
    early_shapes.insert(shapes.begin(), shapes.end());
    record.first_shapes = record.shapes.size();
    return false;
  }
  if (record.last_new == step) return false;
  record.last_new = step;
  ++record.new_steps;
  bool from_early = arguments > 0;
  for (size_t i = 0; i < arguments; ++i) from_early = from_early && early_shapes.count(shapes[i]) > 0;
  record.last_was_origin = from_early || last_origin != step;
  if (record.last_was_origin) ++record.origins;
  last_origin = step;
  return record.new_steps == 1;
}

// Needs the lock.
void forget_records() {
  // They stay in memory: operators that are under way, and blocks of memory, point to them.
  for (auto& record : records) (void)record.release();
  records.clear();
  by_kind.clear();
  early_shapes.clear();
  steps = 0;
  last_origin = -1;
}

void append(std::string& json, const char* key, const Sum& sum) {
  char text[128];
  std::snprintf(text, sizeof text, ", \"%s\": [%zu, %.0f, %.0f]", key, sum.calls, sum.bytes, sum.multiply_adds);
  json += text;
}

void append(std::string& json, const char* key, const std::string& text) {
  json += std::string(", \"") + key + "\": \"" + text + "\"";
}

void append(std::string& json, const char* key, size_t number) {
  json += std::string(", \"") + key + "\": " + std::to_string(number);
}

std::string as_json(const Record& record) {
  static const char* const kPhases[] = {"forward", "backward", "optimizer"};
  std::string json = "{\"place\": " + std::to_string(record.place) + ", \"device\": " + std::to_string(record.device);
  append(json, "operator", record.name);
  append(json, "phase", kPhases[record.phase]);
  append(json, "types", record.types);
  append(json, "options", record.options);
  append(json, "crossing", record.crossing);
  append(json, "by_truth", record.by_truth ? 1 : 0);
  append(json, "first", record.first);
  append(json, "later", record.later);
  append(json, "after", record.open);
  append(json, "seen_steps", record.seen_steps);
  append(json, "shapes", record.known.size());
  append(json, "first_shapes", record.first_shapes);
  const size_t unfinished = record.last_new == steps ? 1 : 0;  // behind the last step there is none
  append(json, "new_steps", record.new_steps - unfinished);
  append(json, "origins", record.origins - (record.last_was_origin ? unfinished : 0));
  json += ", \"examples\": [";
  for (size_t i = 0; i < record.shapes.size(); ++i) json += (i ? ", \"" : "\"") + record.shapes[i] + "\"";
  return json + "]}";
}

}  // namespace

bool insight() {
  static const bool wanted = std::getenv("NPUMIGRATE_EMULATOR_INSIGHT") != nullptr;
  return wanted;
}

NotedCall::NotedCall(const c10::OperatorHandle& op, const torch::jit::Stack& stack) {
  const auto& schema = op.schema();
  const size_t count = schema.arguments().size();
  const c10::ArrayRef<const c10::IValue> arguments(stack.data() + stack.size() - count, count);
  const int phase = phase_now();
  const int place = place_of_operator(phase == 1);
  const char* const across = crossing(schema.name(), arguments);
  uint64_t kind = mixed(reinterpret_cast<uint64_t>(&schema), reinterpret_cast<uint64_t>(across));
  kind = mixed(kind, static_cast<uint64_t>((place + 1) * 4 + phase));
  if (Whole::now() != nullptr) kind = mixed(kind, reinterpret_cast<uint64_t>(Whole::now()));
  bool by_truth = false;
  for (size_t i = 0; i < count; ++i) {
    const auto* alias = schema.arguments()[i].alias_info();
    const bool written = alias != nullptr && alias->isWrite();
    each_tensor(arguments[i], [&](const at::Tensor& tensor) {
      const bool npu = on_npu(tensor);
      kind = mixed(kind, static_cast<uint64_t>(tensor.scalar_type()) * 2 + static_cast<uint64_t>(npu));
      shapes_.push_back(shape_of(tensor));
      arguments_ = mixed(arguments_, shapes_.back());
      bytes_ += bytes_of(tensor);
      if (written && npu && tensor.has_storage()) written_.push_back(tensor.storage().data());
      by_truth = by_truth || (arguments[i].isOptionalTensorList() &&
                              (tensor.scalar_type() == at::kBool || tensor.scalar_type() == at::kByte));
    });
  }
  multiply_adds_ = multiply_adds(schema.name(), arguments, true).value_or(0.0);

  const std::lock_guard<std::mutex> lock(records_guard);
  const auto found = by_kind.find(kind);
  record_ = found != by_kind.end() ? found->second : nullptr;
  if (record_ == nullptr) {
    record_ = &new_record(kind, noted_name(schema), place, phase);
    record_->crossing = across;
    record_->by_truth = by_truth;
    record_->options = options_of(schema, arguments);
    for (const c10::IValue& value : arguments)
      each_tensor(value, [&](const at::Tensor& tensor) {
        std::string& types = record_->types;
        types += (types.empty() ? "" : " ") + std::string(c10::toString(tensor.scalar_type()));
      });
  }
  if (record_->shapes.size() < kShapesShown) {
    const auto [text, is_new] = record_->arguments.try_emplace(arguments_);
    if (is_new)
      for (const c10::IValue& value : arguments)
        each_tensor(value, [&](const at::Tensor& tensor) { append_shape(text->second, tensor); });
  }
}

void NotedCall::done(const c10::OperatorHandle& op, c10::Device device, const torch::jit::Stack& stack) {
  const size_t arguments = shapes_.size();
  uint64_t hash = arguments_;
  const size_t count = op.schema().returns().size();
  const c10::ArrayRef<const c10::IValue> results(stack.data() + stack.size() - count, count);
  for (const c10::IValue& value : results)
    each_tensor(value, [&](const at::Tensor& tensor) {
      shapes_.push_back(shape_of(tensor));
      hash = mixed(hash, shapes_.back());
      bytes_ += bytes_of(tensor);
      if (on_npu(tensor) && tensor.has_storage()) written_.push_back(tensor.storage().data());
    });
  for (const void* data : written_) name_memory(data, record_->place, record_->name.c_str());
  bool tell = false;
  {
    const std::lock_guard<std::mutex> lock(records_guard);
    record_->device = device.index();
    add(*record_, {1, bytes_, multiply_adds_});
    if (record_->known.count(hash) == 0) {
      std::string text = record_->arguments[arguments_] + ">";
      std::string after;
      for (const c10::IValue& value : results)
        each_tensor(value, [&](const at::Tensor& tensor) { append_shape(after, tensor); });
      tell = add_shapes(*record_, hash, text + after, shapes_, arguments);
    }
  }
  if (const OnNewShapes listening = on_new_shapes; tell && listening != nullptr) listening(record_->number);
}

void note_number(c10::Device device, double bytes) {
  const int phase = phase_now();
  const int place = current_place();
  const uint64_t kind = mixed(1, static_cast<uint64_t>((place + 1) * 4 + phase));
  const std::lock_guard<std::mutex> lock(records_guard);
  const auto found = by_kind.find(kind);
  Record& record =
      found != by_kind.end() ? *found->second : new_record(kind, "aten::_local_scalar_dense", place, phase);
  record.device = device.index();
  add(record, {1, bytes, 0});
}

}  // namespace emulator

// Have `tell` called, with Python's lock, when a record meets new shapes after the first step for the first time.
// A forked process begins anew.
EXPORT void emulator_insight_begin(void (*tell)(size_t)) {
  static const bool in_children = [] {
    emulator::forget_memory_in_children();  // first, as that lock is taken behind the one of the records
    return pthread_atfork([] { emulator::records_guard.lock(); }, [] { emulator::records_guard.unlock(); },
                          [] {
                            emulator::forget_records();
                            emulator::records_guard.unlock();
                          }) == 0;
  }();
  (void)in_children;
  emulator::on_new_shapes = tell;
  emulator::memory_wanted = true;
}

EXPORT void emulator_insight_optimizing(int now) {
  emulator::optimizing = now != 0;
}

EXPORT void emulator_insight_stepped() {
  ++emulator::steps;
  emulator::memory_step();
}

// The steps so far were none: begin to count again.
EXPORT void emulator_insight_restart() {
  const std::lock_guard<std::mutex> lock(emulator::records_guard);
  emulator::steps = 0;
  for (const auto& record : emulator::records) {
    record->close();
    record->first.add(record->later);
    record->later = {};
    record->open_in = 0;
    record->first_shapes = record->shapes.size();
    record->seen_steps = record->new_steps = record->origins = 0;
    record->last_new = -1;
    record->last_was_origin = false;
  }
}

// {"records": [{"place": 3, …, "first": [calls, bytes, multiply-adds], …}, …], "memory": {"0": …}} into `text`.
// Returns the room that it takes, with the final zero.
EXPORT size_t emulator_insight(char* text, size_t room) {
  const std::lock_guard<std::mutex> lock(emulator::records_guard);
  std::string json = "{\"records\": [";
  for (const auto& record : emulator::records) {
    if (record->open_in < emulator::steps) record->close();
    json += (record->number ? ",\n" : "") + emulator::as_json(*record);
  }
  json += "], \"memory\": " + emulator::memory_as_json() + "}";
  std::snprintf(text, room, "%s", json.c_str());
  return json.size() + 1;
}
