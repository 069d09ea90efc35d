package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"sync"
	"syscall"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"
	"github.com/tetratelabs/wazero/imports/wasi_snapshot_preview1"

	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/sdk/abi"
)

// features of WebAssembly that guests may use. Reference types are out because
// table.grow takes memory past every limit; SIMD because no guest needs it.
const features = api.CoreFeatureBulkMemoryOperations | api.CoreFeatureMultiValue | api.CoreFeatureMutableGlobal |
	api.CoreFeatureNonTrappingFloatToIntConversion | api.CoreFeatureSignExtensionOps

// engines are the two runtimes. They share nothing but the folder of compiled code.
type engines struct {
	cold, hot wazero.Runtime
	caches    []wazero.CompilationCache
}

func newEngines(ctx context.Context, dir string) (*engines, error) {
	e := &engines{}
	if err := privateFolder(dir); err != nil {
		return nil, err
	}
	var err error
	if e.cold, err = e.start(ctx, dir, true); err == nil {
		e.hot, err = e.start(ctx, dir, false)
	}
	if err != nil {
		return nil, errors.Join(err, e.close(ctx))
	}
	return e, nil
}

// privateFolder makes the folder of compiled code and refuses one that others
// could write: what lies there is executed.
func privateFolder(dir string) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the folder of compiled plugins: %w", err)
	}
	info, err := os.Stat(dir)
	if err != nil {
		return fmt.Errorf("examining the folder of compiled plugins: %w", err)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("the folder of compiled plugins %s belongs to another user", dir)
	}
	if info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(dir, 0o700); err != nil {
			return fmt.Errorf("making the folder of compiled plugins private: %w", err)
		}
	}
	return nil
}

func (e *engines) start(ctx context.Context, dir string, interruptible bool) (r wazero.Runtime, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("starting the WebAssembly compiler: plugins need it, and it does not support this machine (%s/%s): %v", runtime.GOOS, runtime.GOARCH, p)
		}
	}()
	config := wazero.NewRuntimeConfigCompiler().WithCoreFeatures(features).WithMemoryLimitPages(abi.MaxMemoryPages).
		WithCloseOnContextDone(interruptible).WithDebugInfoEnabled(false)
	if dir != "" {
		cache, err := wazero.NewCompilationCacheWithDir(dir)
		if err != nil {
			return nil, fmt.Errorf("opening the folder of compiled plugins: %w", err)
		}
		e.caches = append(e.caches, cache)
		config = config.WithCompilationCache(cache)
	}
	r = wazero.NewRuntimeWithConfig(ctx, config)
	wasi := r.NewHostModuleBuilder(abi.WASIModule)
	wasi_snapshot_preview1.NewFunctionExporter().ExportFunctions(wasi)
	if _, err := wasi.Instantiate(ctx); err != nil {
		return nil, errors.Join(fmt.Errorf("offering WASI to plugins: %w", err), r.Close(ctx))
	}
	_, err = r.NewHostModuleBuilder(abi.ImportModule).NewFunctionBuilder().
		WithGoModuleFunction(api.GoModuleFunc(hostLog), []api.ValueType{api.ValueTypeI32, api.ValueTypeI32, api.ValueTypeI32}, nil).
		Export(abi.ImportLog).Instantiate(ctx)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("offering ls.log to plugins: %w", err), r.Close(ctx))
	}
	return r, nil
}

func (e *engines) close(ctx context.Context) error {
	var errs []error
	for _, r := range []wazero.Runtime{e.cold, e.hot} {
		if r != nil {
			errs = append(errs, r.Close(ctx))
		}
	}
	for _, c := range e.caches {
		errs = append(errs, c.Close(ctx))
	}
	return errors.Join(errs...)
}

// compiled is a module that passed the gate. The hot code is compiled when a
// stream is first opened: adapters never need it.
type compiled struct {
	shape   shape
	name    string // for sentences: "mix 1.0.0", or a hash before it is described
	sha     string
	engines *engines
	wasm    []byte
	cold    wazero.CompiledModule

	mu  sync.Mutex
	hot wazero.CompiledModule
}

func (e *engines) compile(ctx context.Context, r wazero.Runtime, wasm []byte) (m wazero.CompiledModule, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = refuse("the compiler failed on it: %v", p)
		}
	}()
	m, err = r.CompileModule(experimental.WithCompilationWorkers(ctx, min(4, runtime.GOMAXPROCS(0))), wasm)
	if err != nil {
		return nil, refuse("it is not valid: %s", clean([]byte(err.Error()), 300))
	}
	return m, nil
}

func (c *compiled) hotModule(ctx context.Context) (wazero.CompiledModule, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.hot == nil {
		m, err := c.engines.compile(ctx, c.engines.hot, c.wasm)
		if err != nil {
			return nil, err
		}
		c.hot = m
	}
	return c.hot, nil
}

var _ plugin.Host = (*Host)(nil)
