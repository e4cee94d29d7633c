// The extension module: the types, the hooks and the settings of the core.
#include <nanobind/nanobind.h>
#include <nanobind/stl/pair.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include "../blas.h"
#include "../blocks.h"
#include "../checksum.h"
#include "../cpu.h"
#include "../threads.h"
#include "backward.h"
#include "calls.h"
#include "compiled.h"
#include "device.h"
#include "key.h"
#include "objects.h"
#include "program_type.h"

namespace nb = nanobind;

static void set_hooks(nb::dict given) {
  using namespace gt;
  const std::pair<const char*, PyObject**> slots[] = {{"convert", &hooks.convert},
                                                      {"shape", &hooks.shape},
                                                      {"dtypes", &hooks.dtypes},
                                                      {"reads", &hooks.reads},
                                                      {"index", &hooks.index},
                                                      {"accumulate", &hooks.accumulate},
                                                      {"densify", &hooks.densify},
                                                      {"errors", &hooks.errors},
                                                      {"argument_error", &hooks.argument_error},
                                                      {"graph_inputs", &hooks.graph_inputs},
                                                      {"graph_program", &hooks.graph_program},
                                                      {"not_compiled", &hooks.not_compiled},
                                                      {"slices", &hooks.slices},
                                                      {"dtype_code", &hooks.dtype_code},
                                                      {"np_empty", &hooks.np_empty},
                                                      {"np_dtypes", &hooks.np_dtypes},
                                                      {"fetch", &hooks.fetch},
                                                      {"held", &hooks.held},
                                                      {"stored", &hooks.stored},
                                                      {"times_bools", &hooks.times_bools},
                                                      {"locate", &hooks.locate}};
  for (const char* name : {"dtypes", "np_dtypes", "errors"}) {
    nb::object tuple = given[name];
    const int wanted = std::string_view(name) == "errors" ? int(Code::Untraceable) + 1 : kDtypes;
    if (!PyTuple_Check(tuple.ptr()) || PyTuple_GET_SIZE(tuple.ptr()) != wanted)
      throw nb::value_error("set_hooks: a table is not complete");
  }
  for (auto& [name, slot] : slots) *slot = Py_NewRef(nb::object(given[name]).ptr());
  for (int i = 0; i < kDtypes; ++i) keep_for_ever(PyTuple_GET_ITEM(hooks.dtypes, i));
}

static bool is_main_interpreter() {
  if (PyInterpreterState_Get() == PyInterpreterState_Main()) return true;
  PyErr_SetString(PyExc_ImportError,
                  "gradtape cannot be imported in a subinterpreter: its core, like NumPy's, has one state "
                  "for the whole process. "
                  "Hint: use it in the main interpreter, or in a process of its own (multiprocessing).");
  return false;
}

// The module, made by nanobind. `PyInit__core` below first checks that it can be imported here.
NB_MODULE(gradtape_core, m) {
  if (!is_main_interpreter()) throw nb::python_error();
  if (!gt::isa_level()) throw std::runtime_error(gt::no_copy_text());  // nanobind makes it an ImportError
  gt::memory_info();  // allocates the counters of the allocator, while there is memory
  m.doc() = "The native core of gradtape.";
  m.attr("VERSION") = GRADTAPE_VERSION;
  gt::init_names();
  gt::compiled_lock = gt::checked(PyObject_CallNoArgs(reinterpret_cast<PyObject*>(&PyBaseObject_Type)));
  gt::init_tensor_type(m.ptr());
  gt::init_variable_type(m.ptr());
  gt::init_op_type(m.ptr());
  gt::init_calls(m.ptr());
  gt::init_thread_state(m.ptr());
  gt::init_cache_type(m.ptr());
  gt::init_tape_type(m.ptr());
  gt::init_exchange(m.ptr());
  gt::init_data(m.ptr());
  gt::init_records(m.ptr());
  gt::init_boxes(m.ptr());
  gt::init_images(m.ptr());
  gt::init_device(m.ptr());
  gt::init_program_type(m.ptr());
  gt::init_runner(m.ptr());
  gt::init_loop(m.ptr());
  gt::init_update_type(m.ptr());

  m.def("set_hooks", set_hooks, "Gives the core the Python functions it calls for what is rare.");
  m.def("set_engine_op", [](const std::string& name, nb::object op) {
    if (!gt::is_op(op.ptr())) throw nb::type_error("set_engine_op: expected an Op");
    try {
      gt::set_engine_op(name.c_str(), op.ptr());
    } catch (const gt::Error& e) {
      throw nb::value_error(e.text.c_str());
    }
  });
  m.def(
      "dtype_table",
      [] {
        nb::list rows;
        for (const gt::DtypeFacts& f : gt::kDtypeFacts)
          rows.append(
              nb::make_tuple(f.name, std::string(1, f.kind), f.size, f.number, f.format, int(f.real)));
        return rows;
      },
      "What core/dtypes.def says of each element type: (name, kind, size, TensorFlow's number, format, code "
      "of the real type).");
  m.def(
      "param_kinds",
      [] {
        nb::dict kinds;
        auto add = [&](const char* name, gt::ParamKind k) {
          kinds[name] = nb::make_tuple(int(k), gt::is_operand(k), gt::is_attribute(k));
        };
#define GT_ENTRY(name) add(#name, gt::ParamKind::name);
        GT_PARAM_KINDS(GT_ENTRY)
#undef GT_ENTRY
        return kinds;
      },
      "What a parameter of an op may be: by name (code, whether it is an operand, whether it is an "
      "attribute).");
  m.def(
      "rule_kinds",
      [] {
        nb::dict kinds;
#define GT_ENTRY(name) kinds[#name] = int(gt::Rule::Kind::name);
        GT_RULE_KINDS(GT_ENTRY)
#undef GT_ENTRY
        return kinds;
      },
      "How a rule makes the gradient of an operand: names with their codes.");
  m.def("native_names", gt::impl_names, "Names of the native implementations.");
  m.def("memory_info", [] {
    gt::MemoryInfo info = gt::memory_info();
    nb::dict d;
    d["live_bytes"] = info.live_bytes;
    d["live_tensors"] = info.live_tensors;
    d["cached_bytes"] = info.cached_bytes;
    d["peak"] = info.peak;
    return d;
  });
  m.def(
      "want_room",
      [](size_t bytes) {
        if (!gt::guarded<bool>(false, [&] { return gt::want_room(bytes), true; })) throw nb::python_error();
      },
      "Raises ResourceExhaustedError if the machine has no memory for so many bytes.");
  m.def("reset_peak_memory", gt::reset_peak);
  m.def("release_cached_memory", gt::release_cached);
  m.def("num_threads", gt::num_threads);
  m.def("set_num_threads", gt::set_num_threads);
  m.def(
      "crc32c",
      [](nb::handle data) {
        Py_buffer view;
        if (PyObject_GetBuffer(data.ptr(), &view, PyBUF_SIMPLE)) throw nb::python_error();
        uint32_t sum = gt::crc32c(view.buf, size_t(view.len));
        PyBuffer_Release(&view);
        return sum;
      },
      "The CRC-32C of bytes.");
  m.def("stepping", gt::stepping,
        "The number of the record whose gradient rule is running, or 0, and its op.");
  m.def(
      "record_number",
      [](nb::handle t) -> uint64_t {
        gt::Node* n = gt::is_tensor(t.ptr()) ? gt::node_of(t.ptr()) : nullptr;
        return n ? n->seq : 0;
      },
      "The number of the record that a tensor came from, or 0.");
  m.def("isa_name", [] { return std::string(gt::isa_name()); });
  m.def("set_blas_path", [](const std::string& path) { gt::set_blas_path(path.c_str()); });
  m.def(
      "set_compile", [](bool on) { gt::compiling = on; }, "Whether tapes compile what they see again.");
  m.def("is_compiling", [] { return bool(gt::compiling); });
  m.def("compile_info", [] {
    gt::CompileInfo info = gt::compile_info();
    nb::dict d;
    d["structures"] = info.structures;
    d["programs"] = info.programs;
    d["hits"] = info.hits;
    d["failures"] = info.failures;
    return d;
  });
  m.def("sightings_needed", gt::sightings_needed,
        "How often a structure with this many records must be seen before it is compiled.");
  m.def("clear_compiled", gt::clear_compiled, "Forgets every compiled backward pass.");
  m.def("tensor_count", gt::numbers_so_far,
        "The highest number that a tensor or a record has; those that this thread makes from now on have "
        "higher ones.");
}

extern "C" NB_EXPORT PyObject* PyInit__core() {
  return is_main_interpreter() ? PyInit_gradtape_core() : nullptr;
}
