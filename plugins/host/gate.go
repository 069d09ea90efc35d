package host

import (
	"fmt"
	"slices"
	"sort"

	"github.com/loadstone-db/loadstone/plugins/wasm"
	"github.com/loadstone-db/loadstone/sdk/abi"
)

// limits of the gate. What honest toolchains make stays far below: a Go guest has
// 2 000 functions, 36 000 data segments, 6 200 table entries, 550 nested blocks,
// 900 branch targets, and branches in 1 100 places of one function (a sum of squares of 12 million).
var limits = wasm.Limits{
	ModuleBytes: abi.MaxModuleBytes, MemoryPages: abi.MaxMemoryPages,
	Types: 10_000, Params: 64, Imports: 100, Functions: 50_000, Globals: 1_000, Exports: 10_000, Segments: 100_000,
	TableEntries: 65_536,
	Locals:       50_000, FunctionBytes: 1 << 20, Nesting: 5_000, Loops: 500, Branches: 20_000, Merges: 4_000_000,
	Work: 100_000_000,
}

// signatures of the exports, as text: parameters, then results.
var signatures = map[string]string{
	abi.ExportInitialize: "() → ()",
	abi.ExportABI:        "() → (i32)",
	abi.ExportDescribe:   "() → (i64)",
	abi.ExportAlloc:      "(i32) → (i32)",
	abi.ExportOpen:       "(i32, i32) → (i32)",
	abi.ExportFill:       "(i32) → (i64)",
	abi.ExportFeed:       "(i32, i32) → (i32)",
	abi.ExportRows:       "(i32, i64, i32) → (i64)",
	abi.ExportCall:       "(i32, i32) → (i64)",
	abi.ExportError:      "() → (i64)",
}

// required exports of every plugin.
var required = []string{abi.ExportABI, abi.ExportDescribe}

// moduleShape is what the gate has read of a module.
type moduleShape struct {
	imports   []string // "module.name"
	exports   []string // sorted
	functions map[string]string
	// start is set when the module has a start function, which runs before all else.
	start bool
}

func (s *moduleShape) has(export string) bool { _, ok := s.functions[export]; return ok }

// examine reads a module without compiling it, and refuses what would harm the
// compiler, import what is not offered, or export what is not the contract's.
func examine(file []byte) (moduleShape, *wasm.Module, error) {
	m, err := wasm.Parse(file, limits)
	if err != nil {
		return moduleShape{}, nil, refuse("%s", err)
	}
	s := moduleShape{functions: map[string]string{}, start: m.HasStart, imports: []string{}}
	for _, i := range m.Imports {
		name := wasm.SafeName(i.Module) + "." + wasm.SafeName(i.Name)
		f := isOffered(i.Module, i.Name)
		if f == nil {
			return moduleShape{}, nil, refuse("it imports %s, which plugins are not given", name)
		}
		if want := f.signature(); i.Type != want {
			return moduleShape{}, nil, refuse("it imports %s as %s; it is %s", name, i.Type, want)
		}
		if !slices.Contains(s.imports, name) { // Go's linker imports some twice
			s.imports = append(s.imports, name)
		}
	}
	memory := false
	for _, e := range m.Exports {
		s.exports = append(s.exports, wasm.SafeName(e.Name))
		memory = memory || e.Name == abi.ExportMemory && e.Kind == wasm.KindMemory
		if e.Kind == wasm.KindFunction {
			s.functions[e.Name] = e.Type
		}
	}
	sort.Strings(s.exports)
	if !memory {
		return moduleShape{}, nil, refuse("it does not export its memory under the name %q", abi.ExportMemory)
	}
	for _, name := range required {
		if !s.has(name) {
			return moduleShape{}, nil, refuse("it does not export %s %s", name, signatures[name])
		}
	}
	for _, e := range m.Exports {
		if want, ok := signatures[e.Name]; ok && e.Kind != wasm.KindFunction {
			return moduleShape{}, nil, refuse("its export %s is no function; the contract says %s", e.Name, want)
		} else if ok && e.Type != want {
			return moduleShape{}, nil, refuse("its export %s is %s; the contract says %s", e.Name, e.Type, want)
		}
	}
	return s, m, nil
}

func isOffered(module, name string) *hostFunction {
	for i := range hostFunctions {
		if hostFunctions[i].module == module && hostFunctions[i].name == name {
			return &hostFunctions[i]
		}
	}
	return nil
}

// requireExports reports the first export of the list that is missing.
func (s *moduleShape) requireExports(kind string, names ...string) error {
	for _, name := range names {
		if !s.has(name) {
			return refuse("it says it is %s plugin, but does not export %s %s", kind, name, signatures[name])
		}
	}
	return nil
}

// abiText writes an ABI version.
func abiText(version int32) string { return fmt.Sprintf("%d.%d", version>>16, version&0xffff) }
