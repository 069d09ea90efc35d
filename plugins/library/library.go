package library

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/plugins/host"
)

// Quarantine examines a file of which nothing is known. What it returns an error
// for is not stored; ErrRefused in it is the file's fault.
type Quarantine func(ctx context.Context, wasm []byte) (plugin.Info, error)

// Register is the register of plugins, with the files of uploaded ones by hash.
type Register interface {
	// AddPlugin stores an uploaded file, disabled. The same bytes again change nothing.
	// Another file of the same kind, name and version is ErrConflict, unless the
	// earlier one has never been enabled: then it is replaced. Over a limit is
	// ErrConflict too. A bundled plugin of the hash is ErrConflict.
	AddPlugin(ctx context.Context, p store.Plugin, wasm []byte, limits store.PluginLimits) (store.PluginUpload, error)
	// Plugin returns a row by its hash.
	Plugin(ctx context.Context, sha256 string) (store.Plugin, error)
	ListPlugins(ctx context.Context) ([]store.Plugin, error)
	// PluginFile returns the bytes of an uploaded plugin as they are stored; whoever
	// executes them compares them with the hash.
	PluginFile(ctx context.Context, sha256 string) ([]byte, error)
	// EnablePlugin enables or disables an uploaded plugin; a bundled one is ErrConflict.
	EnablePlugin(ctx context.Context, sha256 string, enabled bool, by string) (store.Plugin, error)
	// DeletePlugin removes an uploaded plugin with its file; a bundled one is
	// ErrConflict. The caller has made sure that nothing uses it.
	DeletePlugin(ctx context.Context, sha256 string) error
}

// Store is what the library needs of the control store.
type Store interface {
	Register
	ListTemplates(ctx context.Context) ([]store.Template, error)
	LiveRuns(ctx context.Context) ([]engine.Run, error)
	Results(ctx context.Context, runID string) ([]engine.RunResult, error)
}

// Options are what a library is made of.
type Options struct {
	// Host executes the plugins. Those registered before Open are fixed: they
	// belong to the program or to its command line.
	Host  *host.Host
	Store Store
	// Dir keeps this server's copies of uploaded files; it is made private (0700).
	Dir string
	// Quarantine examines uploads; nil means Host.Inspect, in this process.
	Quarantine Quarantine
	// Limits bound what uploads may fill; zero values mean DefaultLimits.
	Limits store.PluginLimits
	// Unavailable says why a plugin that is not here comes with other builds of the program; nil, or
	// the answer nil, where none does.
	Unavailable func(ref string) error
	// CheckSpace is an error while the disk has no space for uploads; nil means that it has.
	CheckSpace func() error
	Log        zerolog.Logger
}

// DefaultLimits are what uploads may fill.
var DefaultLimits = store.PluginLimits{Versions: 32, Files: 200, Bytes: 512 << 20}

const (
	// maxManifest bounds the manifest and everything else that is shown of a plugin. The
	// register is read whole, with those of all plugins.
	maxManifest = 256 << 10
	// maxParameters bounds the part of it that every list of plugins carries.
	maxParameters = 64 << 10
	// maxDepth bounds how deep that part is nested: a form is drawn from it.
	maxDepth = 32
)

// maxQueue is how many uploads may wait while one is examined.
const maxQueue = 8

// Library is the plugins of a server. It is safe for concurrent use.
type Library struct {
	host        *host.Host
	store       Store
	files       *files
	quarantine  Quarantine
	checkSpace  func() error
	unavailable func(ref string) error
	limits      store.PluginLimits
	log         zerolog.Logger

	fixed   []fixedPlugin // in the order of registration
	load    sync.Mutex    // one file is loaded at a time
	examine chan struct{} // one file is examined at a time
	waiting atomic.Int32
}

type fixedPlugin struct {
	plugin.Info
	origin plugin.Origin
}

var _ plugin.Host = (*Library)(nil)

// Open returns the library of what the store has. Nothing is loaded before it is used.
func Open(ctx context.Context, o Options) (*Library, error) {
	f, err := openFiles(o.Dir)
	if err != nil {
		return nil, err
	}
	if o.CheckSpace == nil {
		o.CheckSpace = func() error { return nil }
	}
	if o.Quarantine == nil {
		o.Quarantine = o.Host.Inspect
	}
	if o.Limits == (store.PluginLimits{}) {
		o.Limits = DefaultLimits
	}
	l := &Library{
		host:        o.Host,
		store:       o.Store,
		files:       f,
		quarantine:  o.Quarantine,
		checkSpace:  o.CheckSpace,
		unavailable: o.Unavailable,
		limits:      o.Limits,
		log:         o.Log,
		examine:     make(chan struct{}, 1),
	}
	infos, err := o.Host.List(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the plugins: %w", err)
	}
	for _, info := range infos {
		p := fixedPlugin{info, plugin.OriginCommandLine}
		if o.Host.Bundled(info.SHA256) {
			p.origin = plugin.OriginBundled
		}
		l.fixed = append(l.fixed, p)
	}
	rows, err := o.Store.ListPlugins(ctx)
	if err != nil {
		return nil, fmt.Errorf("listing the uploaded plugins: %w", err)
	}
	keep := map[string]bool{}
	for _, r := range rows {
		keep[r.SHA256] = true
	}
	if err := f.sweep(keep); err != nil {
		o.Log.Warn().Err(err).Msg("the folder of uploaded plugins could not be cleared of leftovers")
	}
	return l, nil
}

// splitReference splits "name@version"; version is empty for a bare name.
func splitReference(ref string) (name, version string) {
	name, version, _ = strings.Cut(ref, "@")
	return name, version
}

func matchesReference(ref string, p engine.PluginRef) bool {
	name, version := splitReference(ref)
	if len(ref) == hex.EncodedLen(sha256.Size) && engine.LooksLikeID(ref) {
		return p.SHA256 == ref // a hash is nobody's name
	}
	return p.SHA256 == ref || p.Name == name && (version == "" || version == p.Version)
}

// findFixed returns the plugin of the program that a reference means; the one
// registered last, as the host has it.
func (l *Library) findFixed(kind, ref string) *fixedPlugin {
	for i := range slices.Backward(l.fixed) {
		if p := &l.fixed[i]; (kind == "" || p.Kind == kind) && matchesReference(ref, p.PluginRef) {
			return p
		}
	}
	return nil
}

// uploaded returns the uploaded plugins: rows of the register that are neither
// bundled now nor were it in an earlier build.
func (l *Library) uploaded(ctx context.Context) ([]store.Plugin, error) {
	rows, err := l.store.ListPlugins(ctx)
	if err != nil {
		return nil, fmt.Errorf("reading the register of plugins: %w", err)
	}
	return slices.DeleteFunc(rows, func(p store.Plugin) bool { return p.Bundled || l.findFixed("", p.SHA256) != nil }), nil
}

// selectVersion returns the row that a reference means: the highest enabled version for a
// bare name, or the highest when none is enabled; nil when there is none.
func selectVersion(rows []store.Plugin, kind, ref string) *store.Plugin {
	var best *store.Plugin
	for i := range rows {
		p := &rows[i]
		if kind != "" && p.Kind != kind || !matchesReference(ref, p.PluginRef) {
			continue
		}
		if best == nil || isHigher(p, best) {
			best = p
		}
	}
	return best
}

func isHigher(a, b *store.Plugin) bool {
	if a.Enabled != b.Enabled {
		return a.Enabled
	}
	if c := compareVersions(a.Version, b.Version); c != 0 {
		return c > 0
	}
	return a.CreatedAt.After(b.CreatedAt.Time)
}

// resolve finds the enabled plugin of a kind that a reference means and makes
// sure that the host has it. It returns the hash.
func (l *Library) resolve(ctx context.Context, kind, ref string) (string, error) {
	if p := l.findFixed(kind, ref); p != nil {
		return p.SHA256, nil
	}
	rows, err := l.uploaded(ctx)
	if err != nil {
		return "", err
	}
	row := selectVersion(rows, kind, ref)
	switch {
	case row == nil && l.unavailable != nil && l.unavailable(ref) != nil:
		return "", l.unavailable(ref)
	case row == nil:
		return "", &engine.Error{Code: engine.CodeNotFound, Message: fmt.Sprintf("There is no %s plugin %q.", kind, ref),
			Cause: plugin.ErrNotFound}
	case !row.Enabled:
		return "", disabled(row.PluginRef)
	}
	return row.SHA256, l.ensureLoaded(ctx, *row)
}

func disabled(p engine.PluginRef) error {
	return &engine.Error{Code: engine.CodePlugin, Message: fmt.Sprintf("The plugin %s@%s is disabled.", p.Name, p.Version),
		Hint: "An admin can enable it on the Plugins page.", Cause: plugin.ErrDisabled}
}

func damaged(p engine.PluginRef, how string) error {
	return &engine.Error{Code: engine.CodePlugin,
		Message: fmt.Sprintf("The plugin %s@%s is damaged: %s. It was not executed.", p.Name, p.Version, how),
		Hint:    "Upload the same file again to mend it, or delete it on the Plugins page.", Cause: plugin.ErrDamaged}
}

const (
	changedFile  = "its file was changed after it was uploaded"
	changedBytes = "its bytes in the control store are not those that were uploaded"
	missingBytes = "its file is gone"
)

// ensureLoaded loads an uploaded plugin into the host unless it is there.
func (l *Library) ensureLoaded(ctx context.Context, p store.Plugin) error {
	l.load.Lock()
	defer l.load.Unlock()
	if !l.files.intact(p.SHA256) {
		l.log.Error().Str("plugin", p.Name).Str("version", p.Version).Str("sha256", p.SHA256).
			Msg("the file of a plugin was changed; it is not executed")
		return damaged(p.PluginRef, changedFile)
	}
	if l.host.Has(p.SHA256) {
		return nil
	}
	wasm, err := l.bytes(ctx, p)
	if err != nil {
		return err
	}
	if _, err := l.host.Register(ctx, wasm, false); err != nil {
		e := engine.AsError(err)
		return &engine.Error{Code: engine.CodePlugin,
			Message: fmt.Sprintf("The plugin %s@%s cannot be loaded: %s", p.Name, p.Version, e.Message), Hint: e.Hint,
			Cause: err}
	}
	l.log.Info().Str("plugin", p.Name).Str("version", p.Version).Str("sha256", p.SHA256).Msg("plugin loaded")
	return nil
}

// bytes returns the file's bytes, compared with their hash: this server's copy, or
// the store's when there is none.
func (l *Library) bytes(ctx context.Context, p store.Plugin) ([]byte, error) {
	wasm, err := l.files.read(p.SHA256)
	if err == nil {
		if hashOf(wasm) != p.SHA256 {
			return nil, damaged(p.PluginRef, changedFile)
		}
		return wasm, nil
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("reading the plugin file: %w", err)
	}
	wasm, err = l.store.PluginFile(ctx, p.SHA256)
	switch {
	case errors.Is(err, store.ErrNotFound):
		return nil, damaged(p.PluginRef, missingBytes)
	case err != nil:
		return nil, fmt.Errorf("reading the plugin from the control store: %w", err)
	case hashOf(wasm) != p.SHA256:
		return nil, damaged(p.PluginRef, changedBytes)
	}
	if err := l.files.put(p.SHA256, wasm); err != nil {
		// The store has it; the next load tries again.
		l.log.Warn().Err(err).Str("sha256", p.SHA256).Msg("a plugin could not be kept in the data directory")
	}
	return wasm, nil
}

// Inspect implements plugin.Host: the file goes through quarantine and is not kept.
func (l *Library) Inspect(ctx context.Context, wasm []byte) (plugin.Info, error) {
	release, err := l.queue(ctx)
	if err != nil {
		return plugin.Info{}, err
	}
	defer release()
	info, err := l.quarantine(ctx, wasm)
	if err == nil {
		err = host.CheckNew(info)
	}
	return info, err
}

// Workload implements plugin.Host: the enabled plugin that the reference means. A
// disabled one is ErrDisabled, a damaged one ErrDamaged, each with a sentence.
func (l *Library) Workload(ctx context.Context, ref string) (plugin.Workload, error) {
	sha, err := l.resolve(ctx, plugin.KindWorkload, ref)
	if err != nil {
		return nil, err
	}
	return l.host.Workload(ctx, sha)
}

// Adapter implements plugin.Host likewise.
func (l *Library) Adapter(ctx context.Context, ref string) (plugin.Adapter, error) {
	sha, err := l.resolve(ctx, plugin.KindAdapter, ref)
	if err != nil {
		return nil, err
	}
	return l.host.Adapter(ctx, sha)
}

// List implements plugin.Host: what runs can be made with.
func (l *Library) List(ctx context.Context) ([]plugin.Info, error) {
	entries, err := l.Entries(ctx)
	if err != nil {
		return nil, err
	}
	var infos []plugin.Info
	for _, e := range entries {
		if e.State == plugin.StateEnabled {
			infos = append(infos, e.Info)
		}
	}
	return infos, nil
}

// Module reads an uploaded plugin by its hash, for a node that does not have it.
func (l *Library) Module(ctx context.Context, sha string) ([]byte, error) {
	p, err := l.store.Plugin(ctx, sha)
	if err != nil {
		return nil, fmt.Errorf("looking a plugin up: %w", err)
	}
	return l.bytes(ctx, p)
}

// ByHash is the library as a node sees it: it executes what a run has frozen, by
// its hash, also when the plugin has been disabled since.
func (l *Library) ByHash() plugin.Host { return byHash{l} }

type byHash struct{ *Library }

func (b byHash) ensure(ctx context.Context, sha string) error {
	if b.findFixed("", sha) != nil {
		return nil
	}
	p, err := b.store.Plugin(ctx, sha)
	if errors.Is(err, store.ErrUnavailable) && b.host.Has(sha) {
		return nil // it was verified when it was loaded
	}
	if err != nil {
		return err
	}
	return b.ensureLoaded(ctx, p)
}

func (b byHash) Workload(ctx context.Context, sha string) (plugin.Workload, error) {
	if err := b.ensure(ctx, sha); err != nil {
		return nil, err
	}
	return b.host.Workload(ctx, sha)
}

func (b byHash) Adapter(ctx context.Context, sha string) (plugin.Adapter, error) {
	if err := b.ensure(ctx, sha); err != nil {
		return nil, err
	}
	return b.host.Adapter(ctx, sha)
}

// inspection is what is stored of a plugin.Info besides the manifest.
type inspection struct {
	ABI     string   `json:"abi"`
	Imports []string `json:"imports"`
	Exports []string `json:"exports"`
}

func documents(info plugin.Info) (manifest, rest []byte, err error) {
	if manifest, err = json.Marshal(info.Manifest); err != nil {
		return nil, nil, fmt.Errorf("writing the manifest: %w", err)
	}
	if rest, err = json.Marshal(inspection{info.ABI, info.Imports, info.Exports}); err != nil {
		return nil, nil, fmt.Errorf("writing the inspection: %w", err)
	}
	return manifest, rest, nil
}

func infoOf(p store.Plugin) plugin.Info {
	info := plugin.Info{PluginRef: p.PluginRef, SizeBytes: p.SizeBytes}
	var rest inspection
	// They were written by documents; what cannot be read is shown as empty.
	_ = json.Unmarshal(p.Manifest, &info.Manifest)
	_ = json.Unmarshal(p.Inspection, &rest)
	info.ABI, info.Imports, info.Exports = rest.ABI, rest.Imports, rest.Exports
	return info
}
