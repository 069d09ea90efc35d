package host

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"sort"
	"strings"
	"sync"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/plugins/manifest"
	"github.com/loadstone-db/loadstone/sdk/abi"
)

// Options configure a Host.
type Options struct {
	// CacheDir keeps compiled code between processes; "" keeps none. What lies in it
	// is executed: it is made with mode 0700, and New refuses a link, a folder of
	// another user, and one that others can write.
	CacheDir string
	// Program names the running program by its content (Program). With it, and
	// CacheDir, what the gate said of a file is kept there too; "" judges each anew.
	Program string
	Log     zerolog.Logger
	// CallFuel bounds each call but ls_fill, in units of about one instruction; 0
	// means 2 000 000 000, half a second to two seconds.
	CallFuel int64
	// PluginMemory bounds what all instances of one plugin hold, and PluginsMemory what
	// those of all plugins do, in bytes; 0 is no bound.
	PluginMemory, PluginsMemory int64
}

// Host runs plugins; it is safe for concurrent use.
type Host struct {
	log       zerolog.Logger
	fuel      int64
	compiler  *compiler
	approvals approvalFolder
	codeDir   string // where the compiler keeps its code
	quota     quota
	mappings  *mappingPool
	// watch, in tests, is what instances tell when a guest begins and ends to compute.
	watch func(computes bool)

	// life ends with Close, and with it the compilations that making counts.
	life   context.Context
	end    context.CancelFunc
	making sync.WaitGroup

	mu     sync.Mutex
	closed bool
	list   []*registered // in the order of registration
}

// registered is one plugin by its hash.
type registered struct {
	host    *Host
	info    plugin.Info
	bundled bool
	// making guards wasm, module and under until the plugin is first used: wasm is what there
	// is to compile, module is nil before, and under is the compilation under way.
	making sync.Mutex
	wasm   func() ([]byte, error)
	module *compiled
	under  *compilation
	// samples is the instance that writes sample rows, shared by all who ask.
	samples sampleInstance
	// pool are the instances that answer ls_call.
	pool instancePool
}

// New starts a host. It fails where wazero's compiler does not run: the
// interpreter would spoil every figure.
func New(ctx context.Context, o Options) (*Host, error) {
	if o.CallFuel == 0 {
		o.CallFuel = callFuel
	}
	e, err := newCompiler(ctx, o.CacheDir)
	if err != nil {
		return nil, err
	}
	approvals, err := openApprovals(o.CacheDir, o.Program)
	if err != nil {
		return nil, errors.Join(err, e.close(ctx))
	}
	life, end := context.WithCancel(context.WithoutCancel(ctx))
	return &Host{life: life, end: end, log: o.Log, fuel: o.CallFuel, compiler: e, approvals: approvals,
		codeDir:  codeFolder(o.CacheDir),
		quota:    quota{perPlugin: o.PluginMemory, overall: o.PluginsMemory},
		mappings: newMappingPool(abi.MaxMemoryPages * abi.PageSize)}, nil
}

// Close frees all compiled code. Streams must have been closed before.
func (h *Host) Close(ctx context.Context) error {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil
	}
	h.closed = true
	list := h.list
	h.list = nil
	h.mu.Unlock()
	h.end()
	h.making.Wait()
	for _, r := range list {
		r.samples.close()
		r.pool.close()
	}
	if n := h.mappings.Lent(); n > 0 {
		h.log.Warn().Int("instances", n).Msg("the plugin host is closed while instances are open")
	}
	h.mappings.Close()
	return h.compiler.close(ctx)
}

// Register examines a plugin and makes it available by name, name@version and
// SHA-256. The same bytes again are no error. A name is served by the plugin
// registered last, but never by an uploaded one when a bundled one has it: that
// is refused.
func (h *Host) Register(ctx context.Context, wasm []byte, bundled bool) (plugin.Info, error) {
	sum := sha256.Sum256(wasm)
	sha := hex.EncodeToString(sum[:])
	if r := h.find(func(r *registered) bool { return r.info.SHA256 == sha }); r != nil {
		return r.info, nil
	}
	r, err := h.load(ctx, wasm, sha)
	if err != nil {
		return plugin.Info{}, err
	}
	r.bundled = bundled
	holder, err := h.enlist(r)
	if err != nil {
		return plugin.Info{}, errors.Join(err, r.release(ctx))
	}
	if holder != r {
		return holder.info, r.release(ctx)
	}
	return r.info, nil
}

// Enlist makes a plugin available whose Info is known, from an Inspect of the
// same bytes by this version of the host. It is compiled when it is first asked
// for, and only then is wasm called, unless this program has approved the bytes of
// that hash before; bytes of another hash are refused.
func (h *Host) Enlist(wasm func() ([]byte, error), info plugin.Info, bundled bool) error {
	_, err := h.enlist(&registered{host: h, info: info, bundled: bundled, wasm: wasm})
	return err
}

// enlist adds a plugin to the list and returns it, or the one that has its bytes already.
func (h *Host) enlist(r *registered) (*registered, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, errors.New("registering a plugin: the host is closed")
	}
	for _, other := range h.list {
		if other.info.SHA256 == r.info.SHA256 {
			return other, nil
		}
		if other.bundled && !r.bundled && other.info.Name == r.info.Name {
			return nil, refuse("the name %q belongs to a bundled plugin; choose another", r.info.Name)
		}
	}
	h.list = append(h.list, r)
	return r, nil
}

// Inspect examines a file without registering it.
func (h *Host) Inspect(ctx context.Context, wasm []byte) (plugin.Info, error) {
	sum := sha256.Sum256(wasm)
	r, err := h.load(ctx, wasm, hex.EncodeToString(sum[:]))
	if err != nil {
		return plugin.Info{}, err
	}
	return r.info, errors.Join(CheckNew(r.info), r.release(ctx))
}

// CheckNew refuses what no plugin that is new may be. Those that are there are loaded all the same.
func CheckNew(info plugin.Info) error {
	if engine.LooksLikeID(info.Name) {
		return refuse("its name %q looks like an id: choose a name in words", info.Name)
	}
	return nil
}

// load takes a file through the gate, compiles it and asks it who it is. sha is its hash.
func (h *Host) load(ctx context.Context, wasm []byte, sha string) (*registered, error) {
	var metered []byte
	c := h.approved(ctx, sha)
	if c == nil {
		s, m, err := examine(wasm)
		if err != nil {
			return nil, err
		}
		c, metered = newCompiled(s, sha, m, h.compiler), m.Meter()
		if c.code, err = h.compiler.compile(ctx, metered); err != nil {
			return nil, err
		}
	}
	info, err := h.describe(ctx, c)
	if err != nil {
		return nil, errors.Join(AsRefused(err), c.code.Close(ctx))
	}
	info.SizeBytes = int64(len(wasm))
	c.name = info.Name + " " + info.Version
	if metered != nil {
		h.approve(c, metered)
	}
	r := &registered{host: h, info: info}
	r.use(c)
	return r, nil
}

// AsRefused makes every failure while a file is examined an ErrNoMemory too.
func AsRefused(err error) error {
	if errors.Is(err, plugin.ErrRefused) || isContext(err) {
		return err
	}
	e := engine.AsError(err)
	return &engine.Error{Code: engine.CodePlugin, Message: "The file is not a plugin that this version accepts: " +
		lowerFirst(e.Message),
		Cause: errors.Join(plugin.ErrRefused, err)}
}

func lowerFirst(s string) string {
	if s == "" {
		return s
	}
	return strings.ToLower(s[:1]) + s[1:]
}

func (h *Host) describe(ctx context.Context, c *compiled) (plugin.Info, error) {
	info := plugin.Info{Imports: orNone(c.shape.imports), Exports: c.shape.exports}
	i, err := c.instantiate(ctx, h)
	if err != nil {
		return info, err
	}
	defer i.close()
	v, err := i.export(ctx, abi.ExportABI)
	if err != nil {
		return info, err
	}
	info.ABI = abiText(int32(uint32(v)))
	if int32(uint32(v))>>16 != abi.Major {
		return info, refuse("it speaks version %s of the plugin ABI, this version speaks %d.%d", info.ABI, abi.Major,
			abi.Minor)
	}
	if v, err = i.export(ctx, abi.ExportDescribe); err != nil {
		return info, err
	}
	doc, err := i.document(abi.ExportDescribe, v)
	if err != nil {
		return info, err
	}
	c.unknown = manifest.UnknownMembers(bytes.TrimRight(doc, "\x00"))
	if info.Manifest, err = manifest.Parse(doc); err != nil {
		return info, refuse("%s", err)
	}
	info.PluginRef = engine.PluginRef{Kind: info.Manifest.Kind, Name: info.Manifest.Name, Version: info.Manifest.Version,
		SHA256: c.sha}
	if info.Kind == plugin.KindAdapter {
		return info, c.shape.requireExports("an adapter", abi.ExportAlloc, abi.ExportCall)
	}
	return info, c.shape.requireExports("a workload", abi.ExportAlloc, abi.ExportOpen, abi.ExportFill)
}

// Unknown names the members of a plugin's manifest that nobody reads; it is nil for a plugin that
// is not compiled.
func (h *Host) Unknown(sha string) []string {
	r := h.find(func(r *registered) bool { return r.info.SHA256 == sha })
	if r == nil {
		return nil
	}
	r.making.Lock()
	defer r.making.Unlock()
	if r.module == nil {
		return nil
	}
	return r.module.unknown
}

// find returns the plugin registered last that matches, or nil.
func (h *Host) find(match func(*registered) bool) *registered {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i := len(h.list) - 1; i >= 0; i-- {
		if match(h.list[i]) {
			return h.list[i]
		}
	}
	return nil
}

// resolve finds a plugin of a kind by "name", "name@version" or SHA-256.
func (h *Host) resolve(kind, ref string) (*registered, error) {
	name, version, _ := strings.Cut(ref, "@")
	r := h.find(func(r *registered) bool {
		return r.info.Kind == kind &&
			(r.info.SHA256 == ref || !engine.LooksLikeID(ref) && r.info.Name == name &&
				(version == "" || r.info.Version == version))
	})
	if r != nil {
		return r, nil
	}
	var known []string
	h.mu.Lock()
	for _, other := range h.list {
		if other.info.Kind == kind {
			known = append(known, other.info.Name+"@"+other.info.Version)
		}
	}
	h.mu.Unlock()
	sort.Strings(known)
	if len(known) == 0 {
		return nil, fail(plugin.ErrNotFound, "There is no %s plugin %q; none is registered.", kind, ref)
	}
	return nil, fail(plugin.ErrNotFound, "There is no %s plugin %q. Registered are: %s.", kind, ref,
		strings.Join(known, ", "))
}

// Workload returns a workload plugin.
func (h *Host) Workload(ctx context.Context, ref string) (plugin.Workload, error) {
	r, err := h.resolve(plugin.KindWorkload, ref)
	if err != nil {
		return nil, err
	}
	if err := r.ready(ctx); err != nil {
		return nil, err
	}
	return &workload{host: h, registered: r}, nil
}

// Adapter returns an adapter plugin.
func (h *Host) Adapter(ctx context.Context, ref string) (plugin.Adapter, error) {
	r, err := h.resolve(plugin.KindAdapter, ref)
	if err != nil {
		return nil, err
	}
	if err := r.ready(ctx); err != nil {
		return nil, err
	}
	return &adapter{registered: r}, nil
}

// List returns what is registered, bundled plugins first, then by name.
func (h *Host) List(context.Context) ([]plugin.Info, error) {
	h.mu.Lock()
	list := append([]*registered(nil), h.list...)
	h.mu.Unlock()
	sort.SliceStable(list, func(i, j int) bool {
		a, b := list[i], list[j]
		if a.bundled != b.bundled {
			return a.bundled
		}
		return a.info.Name < b.info.Name
	})
	infos := make([]plugin.Info, len(list))
	for i, r := range list {
		infos[i] = r.info
	}
	return infos, nil
}

// Bundled reports whether the plugin of that hash came with the program.
func (h *Host) Bundled(sha string) bool {
	r := h.find(func(r *registered) bool { return r.info.SHA256 == sha })
	return r != nil && r.bundled
}

// ask sends a request document to ls_call and returns its answer. The instance
// is one that no other call uses meanwhile.
func (r *registered) ask(ctx context.Context, request []byte) (answer []byte, err error) {
	i, err := r.pool.take(ctx)
	if err != nil {
		return nil, err
	}
	defer func() {
		if err != nil {
			i.close()
			return
		}
		r.pool.put(i)
	}()
	i.log.setSink(r.info.Name, plugin.LogFrom(ctx))
	defer i.log.setSink("", nil) // before another call has it
	ptr, err := i.send(ctx, request, i.callFuel)
	if err != nil {
		return nil, err
	}
	v, err := i.export(ctx, abi.ExportCall, ptr, uint64(len(request)))
	if err != nil {
		return nil, err
	}
	doc, err := i.document(abi.ExportCall, v)
	if err != nil {
		return nil, err
	}
	return doc, nil
}

var errNotJSON = errors.New("not the JSON that is expected")

func answerError(c *compiled, op string, err error) error {
	return fail(plugin.ErrFailed, "Plugin %s answered %q with %s: %s.", c.name, op, errNotJSON,
		manifest.Clean([]byte(fmt.Sprint(err)), 300))
}
