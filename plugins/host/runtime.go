package host

import (
	"context"
	"errors"
	"fmt"
	"os"
	"runtime"
	"syscall"

	"github.com/tetratelabs/wazero"
	"github.com/tetratelabs/wazero/api"
	"github.com/tetratelabs/wazero/experimental"

	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/plugins/manifest"
)

// features of WebAssembly that guests may use. Reference types are out because
// table.grow takes memory past every limit; SIMD because no guest needs it.
const features = api.CoreFeatureBulkMemoryOperations | api.CoreFeatureMultiValue | api.CoreFeatureMutableGlobal |
	api.CoreFeatureNonTrappingFloatToIntConversion | api.CoreFeatureSignExtensionOps

// compiler is wazero's compiler with its folder of compiled code.
type compiler struct {
	runtime wazero.Runtime
	cache   wazero.CompilationCache
}

// privateFolder makes the folder of compiled code, and refuses one into which others
// could have put something: what lies there is executed without another look.
func privateFolder(dir string) error {
	if dir == "" {
		return nil
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return fmt.Errorf("making the folder of compiled plugins: %w", err)
	}
	info, err := os.Lstat(dir)
	if err != nil {
		return fmt.Errorf("examining the folder of compiled plugins: %w", err)
	}
	if !info.IsDir() {
		return fmt.Errorf("the folder of compiled plugins %s is a link; give the folder itself", dir)
	}
	if st, ok := info.Sys().(*syscall.Stat_t); ok && int(st.Uid) != os.Geteuid() {
		return fmt.Errorf("the folder of compiled plugins %s belongs to another user; what lies in it would be executed: "+
			"remove it", dir)
	}
	if info.Mode().Perm()&0o022 != 0 {
		return fmt.Errorf("the folder of compiled plugins %s can be written by other users, and what lies in it would be "+
			"executed: remove it", dir)
	}
	if info.Mode().Perm()&0o077 != 0 {
		if err := os.Chmod(dir, 0o700); err != nil {
			return fmt.Errorf("making the folder of compiled plugins private: %w", err)
		}
	}
	return nil
}

func newCompiler(ctx context.Context, dir string) (e *compiler, err error) {
	if err := privateFolder(dir); err != nil {
		return nil, err
	}
	e = &compiler{}
	defer func() {
		if p := recover(); p != nil {
			err = fmt.Errorf("starting the WebAssembly compiler: plugins need it, and it does not support this machine "+
				"(%s/%s): %v", runtime.GOOS, runtime.GOARCH, p)
		}
		if err != nil {
			e, err = nil, errors.Join(err, e.close(ctx))
		}
	}()
	// The limit of memory is that of memory.Reallocate, which tells a guest's request from its answer.
	config := wazero.NewRuntimeConfigCompiler().WithCoreFeatures(features).
		WithCloseOnContextDone(false).WithDebugInfoEnabled(false)
	if dir != "" {
		if e.cache, err = wazero.NewCompilationCacheWithDir(dir); err != nil {
			return nil, fmt.Errorf("opening the folder of compiled plugins: %w", err)
		}
		config = config.WithCompilationCache(e.cache)
	}
	e.runtime = wazero.NewRuntimeWithConfig(ctx, config)
	if err := registerImports(ctx, e.runtime); err != nil {
		return nil, fmt.Errorf("offering imports to plugins: %w", err)
	}
	return e, nil
}

func (e *compiler) close(ctx context.Context) error {
	var errs []error
	if e.runtime != nil {
		errs = append(errs, e.runtime.Close(ctx))
	}
	if e.cache != nil {
		errs = append(errs, e.cache.Close(ctx))
	}
	return errors.Join(errs...)
}

// compiled is a module that passed the gate.
type compiled struct {
	shape   moduleShape
	name    string   // for sentences: "mix 1.0.0", or a hash before it is described
	sha     string   // of the file as its author made it
	unknown []string // members of its manifest that nobody reads
	// minPages is how many bytes of memory it begins with, most what it may have.
	minPages, maxPages uint64
	compiler           *compiler
	code               wazero.CompiledModule
}

// compile compiles what the gate let through, metered.
func (e *compiler) compile(ctx context.Context, metered []byte) (m wazero.CompiledModule, err error) {
	defer func() {
		if p := recover(); p != nil {
			err = refuse("the compiler failed on it: %v", p)
		}
	}()
	m, err = e.runtime.CompileModule(experimental.WithCompilationWorkers(ctx, min(4, runtime.GOMAXPROCS(0))), metered)
	if err != nil && ctx.Err() != nil {
		return nil, fmt.Errorf("compiling a plugin: %w", ctx.Err()) // that says nothing of the file
	}
	if err != nil {
		return nil, refuse("it is not valid: %s", manifest.Clean([]byte(err.Error()), 300))
	}
	return m, nil
}

var _ plugin.Host = (*Host)(nil)
