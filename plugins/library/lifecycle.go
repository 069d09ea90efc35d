package library

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/sdk/abi"
)

// queue waits for the place in quarantine: one file at a time, so that examining
// does not take the processors from a run.
func (l *Library) queue(ctx context.Context) (release func(), err error) {
	busy := &engine.Error{Code: engine.CodeUnavailable, Message: "Other uploaded files are being examined.",
		Hint: "Try again in a few seconds."}
	if l.waiting.Add(1) > maxQueue+1 {
		l.waiting.Add(-1)
		return nil, busy
	}
	select {
	case l.examine <- struct{}{}:
		return func() { <-l.examine; l.waiting.Add(-1) }, nil
	case <-ctx.Done():
		l.waiting.Add(-1)
		busy.Cause = ctx.Err()
		return nil, busy
	}
}

// Upload stores a file that passes quarantine, disabled. The same bytes again are
// no error: created is false, and a damaged copy of them is mended. A file that is
// not accepted is ErrRefused with one sentence saying why.
func (l *Library) Upload(ctx context.Context, wasm []byte, by string) (e plugin.Entry, created bool, err error) {
	if len(wasm) > abi.MaxModuleBytes {
		return e, false, &engine.Error{Code: engine.CodeTooLarge,
			Message: fmt.Sprintf("The file has more than %d MB.", abi.MaxModuleBytes>>20), Hint: tooLargeHint}
	}
	sha := hashOf(wasm)
	if p := l.findFixed("", sha); p != nil {
		return e, false, &engine.Error{Code: engine.CodeConflict,
			Message: fmt.Sprintf("This file is the plugin %s@%s, which the server has already.", p.Name, p.Version),
			Hint:    "Nothing needs to be uploaded."}
	}
	if err := l.checkSpace(); err != nil {
		return e, false, err
	}
	if known, err := l.store.Plugin(ctx, sha); err == nil && !known.Bundled {
		return l.restoreBytes(ctx, known, wasm)
	} else if err != nil && !errors.Is(err, store.ErrNotFound) {
		return e, false, fmt.Errorf("looking the plugin up: %w", err)
	}
	info, err := l.Inspect(ctx, wasm)
	if err != nil {
		return e, false, err
	}
	if info.SHA256 != sha {
		return e, false, fmt.Errorf("examining an upload: quarantine answered for %q instead of %q", info.SHA256, sha)
	}
	for _, p := range l.fixed {
		if p.Name == info.Name {
			return e, false, &engine.Error{Code: engine.CodeConflict,
				Message: fmt.Sprintf("The name %q belongs to a plugin of the program.", info.Name),
				Hint:    "Give your plugin another name in its manifest.", Cause: plugin.ErrRefused}
		}
	}
	manifest, rest, err := documents(info)
	if err != nil {
		return e, false, err
	}
	if n := len(info.Manifest.Parameters); n > maxParameters {
		return e, false, limitError("the schema of its parameters", n, maxParameters)
	}
	if depth(info.Manifest.Parameters) > maxDepth {
		return e, false, &engine.Error{Code: engine.CodePlugin,
			Message: fmt.Sprintf("The file is not a plugin that this version accepts: the schema of its parameters is nested "+
				"more than %d deep.", maxDepth), Cause: plugin.ErrRefused}
	}
	if n := len(manifest) + len(rest); n > maxManifest {
		return e, false, limitError("what it declares of itself", n, maxManifest)
	}
	up, err := l.store.AddPlugin(ctx,
		store.Plugin{PluginRef: info.PluginRef, SizeBytes: int64(len(wasm)), Manifest: manifest, Inspection: rest,
			UploadedBy: by}, wasm, l.limits)
	if err != nil {
		return e, false, err
	}
	if up.Replaced != "" {
		if err := l.drop(ctx, up.Replaced); err != nil {
			l.log.Warn().Err(err).Str("sha256", up.Replaced).Msg("a replaced plugin could not be removed")
		}
	}
	l.writeCopy(sha, wasm)
	l.log.Info().Str("plugin", info.Name).Str("version", info.Version).Str("sha256", sha).Str("by", by).
		Msg("plugin uploaded")
	e, err = l.Entry(ctx, sha)
	return e, up.Created, err
}

// depth is how deep a JSON document is nested.
func depth(doc []byte) int {
	deepest, now, quoted := 0, 0, false
	for i := 0; i < len(doc); i++ {
		switch c := doc[i]; {
		case quoted && c == '\\':
			i++
		case c == '"':
			quoted = !quoted
		case quoted:
		case c == '{' || c == '[':
			now++
			deepest = max(deepest, now)
		case c == '}' || c == ']':
			now--
		}
	}
	return deepest
}

func limitError(what string, n, limit int) error {
	return &engine.Error{Code: engine.CodePlugin,
		Message: fmt.Sprintf("The file is not a plugin that this version accepts: %s has %d KB, the limit is %d KB.", what,
			n>>10, limit>>10), Cause: plugin.ErrRefused}
}

const tooLargeHint = "Build it for size: strip the debug information (Go: -ldflags='-s -w', clang: -Wl,--strip-all)."

// writeCopy writes this server's copy. The store has the bytes; a load without a copy fetches them.
func (l *Library) writeCopy(sha string, wasm []byte) {
	if err := l.files.put(sha, wasm); err != nil {
		l.log.Warn().Err(err).Str("sha256", sha).Msg("a plugin could not be kept in the data directory")
	}
}

// restoreBytes takes bytes that are known already; they take the place of changed ones.
func (l *Library) restoreBytes(ctx context.Context, p store.Plugin, wasm []byte) (plugin.Entry, bool, error) {
	stored, err := l.store.PluginFile(ctx, p.SHA256)
	if err != nil && !errors.Is(err, store.ErrNotFound) {
		return plugin.Entry{}, false, fmt.Errorf("reading the plugin from the control store: %w", err)
	}
	if err != nil || hashOf(stored) != p.SHA256 {
		if _, err := l.store.AddPlugin(ctx, p, wasm, l.limits); err != nil {
			return plugin.Entry{}, false, err
		}
	}
	if held, err := l.files.read(p.SHA256); err != nil || hashOf(held) != p.SHA256 {
		l.writeCopy(p.SHA256, wasm)
	}
	e, err := l.Entry(ctx, p.SHA256)
	return e, false, err
}

func (l *Library) drop(ctx context.Context, sha string) error {
	return errors.Join(l.host.Unregister(ctx, sha), l.files.remove(sha))
}

// uploadedRow returns the uploaded row of a hash, or of a reference that means it.
func (l *Library) uploadedRow(ctx context.Context, ref string) (store.Plugin, error) {
	rows, err := l.uploaded(ctx)
	if err != nil {
		return store.Plugin{}, err
	}
	if row := selectVersion(rows, "", ref); row != nil {
		return *row, nil
	}
	if p := l.findFixed("", ref); p != nil {
		return store.Plugin{PluginRef: p.PluginRef, Bundled: true, Enabled: true}, nil
	}
	return store.Plugin{}, &engine.Error{Code: engine.CodeNotFound, Message: fmt.Sprintf("There is no plugin %q.", ref),
		Hint: "It may have been deleted. The list shows what there is.", Cause: store.ErrNotFound}
}

// Enable allows runs to be made with an uploaded plugin. It is loaded first: what
// cannot be loaded stays disabled.
func (l *Library) Enable(ctx context.Context, ref, by string) (plugin.Entry, error) {
	p, err := l.uploadedRow(ctx, ref)
	if err != nil {
		return plugin.Entry{}, err
	}
	if !p.Bundled {
		if err := l.ensureLoaded(ctx, p); err != nil {
			return plugin.Entry{}, err
		}
		if _, err := l.store.EnablePlugin(ctx, p.SHA256, true, by); err != nil {
			return plugin.Entry{}, err
		}
	}
	return l.Entry(ctx, p.SHA256)
}

// Disable refuses new runs with the plugin; live ones go on.
func (l *Library) Disable(ctx context.Context, ref, by string) (plugin.Entry, error) {
	p, err := l.uploadedRow(ctx, ref)
	if err != nil {
		return plugin.Entry{}, err
	}
	if p.Bundled {
		return plugin.Entry{}, bundledError(p.PluginRef, "disabled")
	}
	if _, err := l.store.EnablePlugin(ctx, p.SHA256, false, by); err != nil {
		return plugin.Entry{}, err
	}
	return l.Entry(ctx, p.SHA256)
}

func bundledError(p engine.PluginRef, verb string) error {
	return &engine.Error{Code: engine.CodeConflict,
		Message: fmt.Sprintf("The plugin %s@%s came with the program, or was named on its command line, and cannot be %s.",
			p.Name, p.Version, verb),
		Hint: "Only uploaded plugins are enabled, disabled and deleted."}
}

// Delete removes an uploaded plugin. It is a conflict while a template names it or
// a live run executes it; the sentence names them.
func (l *Library) Delete(ctx context.Context, ref string) (engine.PluginRef, error) {
	p, err := l.uploadedRow(ctx, ref)
	if err != nil {
		return p.PluginRef, err
	}
	if p.Bundled {
		return p.PluginRef, bundledError(p.PluginRef, "deleted")
	}
	e, err := l.Entry(ctx, p.SHA256)
	if err != nil {
		return p.PluginRef, err
	}
	switch {
	case len(e.LiveRuns) > 0:
		return p.PluginRef, inUse(e, "A live run executes", "Live runs execute", e.LiveRuns, "Stop it, or wait for its end.")
	case len(e.Templates) > 0:
		return p.PluginRef, inUse(e, "A template uses", "Templates use", e.Templates,
			"Change the template to another plugin or version, or delete it.")
	}
	if err := l.store.DeletePlugin(ctx, p.SHA256); err != nil {
		return p.PluginRef, err
	}
	if err := l.drop(ctx, p.SHA256); err != nil {
		l.log.Warn().Err(err).Str("sha256", p.SHA256).Msg("the file of a deleted plugin could not be removed")
	}
	return p.PluginRef, nil
}

func inUse(e plugin.Entry, one, many string, uses []plugin.Use, hint string) error {
	const shown = 5
	var names []string
	for _, u := range uses[:min(shown, len(uses))] {
		names = append(names, fmt.Sprintf("%q", u.Name))
	}
	if more := len(uses) - shown; more > 0 {
		names = append(names, fmt.Sprintf("and %d more", more))
	}
	verb := one
	if len(uses) > 1 {
		verb = many
	}
	return &engine.Error{Code: engine.CodeConflict,
		Message: fmt.Sprintf("%s the plugin %s@%s: %s.", verb, e.Name, e.Version, strings.Join(names, ", ")), Hint: hint,
		Cause: store.ErrInUse}
}

// Entries returns every plugin: those of the program first, then by kind, name and
// version, the highest first.
func (l *Library) Entries(ctx context.Context) ([]plugin.Entry, error) {
	rows, err := l.uploaded(ctx)
	if err != nil {
		return nil, err
	}
	entries := make([]plugin.Entry, 0, len(l.fixed)+len(rows))
	for _, p := range l.fixed {
		winner := l.findFixed(p.Kind, p.Name)
		entries = append(entries, plugin.Entry{Info: p.Info, Enabled: true, Bundled: p.origin == plugin.OriginBundled,
			State: plugin.StateEnabled, Origin: p.origin,
			Default: winner != nil && winner.SHA256 == p.SHA256})
	}
	slices.SortStableFunc(rows, func(a, b store.Plugin) int {
		if c := strings.Compare(b.Kind+" ", a.Kind+" "); c != 0 {
			return c // workloads first
		}
		if c := strings.Compare(a.Name, b.Name); c != 0 {
			return c
		}
		return compareVersions(b.Version, a.Version)
	})
	for _, p := range rows {
		e := plugin.Entry{Info: infoOf(p), Enabled: p.Enabled, Origin: plugin.OriginUploaded, State: plugin.StateDisabled,
			UploadedBy: p.UploadedBy, UploadedAt: p.CreatedAt, EnabledBy: p.EnabledBy, EnabledAt: p.EnabledAt}
		if p.Enabled {
			e.State = plugin.StateEnabled
			winner := selectVersion(rows, p.Kind, p.Name)
			e.Default = l.findFixed(p.Kind, p.Name) == nil && winner.SHA256 == p.SHA256
		}
		if !l.files.intact(p.SHA256) {
			e.State, e.Problem = plugin.StateDamaged, engine.AsError(damaged(p.PluginRef, changedFile)).Message
		}
		entries = append(entries, e)
	}
	return entries, l.addUses(ctx, entries, rows)
}

// Entry returns the plugin that a reference means, in whatever state: a hash, a
// name@version, or a name.
func (l *Library) Entry(ctx context.Context, ref string) (plugin.Entry, error) {
	entries, err := l.Entries(ctx)
	if err != nil {
		return plugin.Entry{}, err
	}
	var sha string
	if p := l.findFixed("", ref); p != nil {
		sha = p.SHA256
	} else if p, err := l.uploadedRow(ctx, ref); err == nil {
		sha = p.SHA256
	} else {
		return plugin.Entry{}, err
	}
	for _, e := range entries {
		if e.SHA256 == sha {
			return e, nil
		}
	}
	return plugin.Entry{}, &engine.Error{Code: engine.CodeNotFound, Message: fmt.Sprintf("There is no plugin %q.", ref),
		Cause: store.ErrNotFound}
}

// addUses notes which templates and live runs name the plugins. A bare name counts
// for the version that it means now.
func (l *Library) addUses(ctx context.Context, entries []plugin.Entry, rows []store.Plugin) error {
	at := map[string]*plugin.Entry{}
	for i := range entries {
		entries[i].Templates, entries[i].LiveRuns = []plugin.Use{}, []plugin.Use{}
		at[entries[i].SHA256] = &entries[i]
	}
	meant := func(kind, ref string) *plugin.Entry {
		if p := l.findFixed(kind, ref); p != nil {
			return at[p.SHA256]
		}
		if p := selectVersion(rows, kind, ref); p != nil {
			return at[p.SHA256]
		}
		return nil
	}
	templates, err := l.store.ListTemplates(ctx)
	if err != nil {
		return fmt.Errorf("reading who uses the plugins: %w", err)
	}
	for _, t := range templates {
		use := plugin.Use{ID: t.TemplateID, Name: t.Name}
		for kind, ref := range references(t.Config) {
			if e := meant(kind, ref); e != nil {
				e.Templates = append(e.Templates, use)
			}
		}
	}
	live, err := l.store.LiveRuns(ctx)
	if err != nil {
		return fmt.Errorf("reading who uses the plugins: %w", err)
	}
	for _, run := range live {
		use := plugin.Use{ID: run.RunID, Name: run.RunName}
		refs := references(run.Scenario)
		results, err := l.store.Results(ctx, run.RunID)
		if err != nil && !errors.Is(err, store.ErrNotFound) {
			return fmt.Errorf("reading who uses the plugins: %w", err)
		}
		if len(results) > 0 && results[0].Plan != nil {
			// What was frozen counts, whatever the name means by now.
			refs = map[string]string{plugin.KindWorkload: results[0].Plan.Workload.SHA256,
				plugin.KindAdapter: results[0].Plan.Adapter.SHA256}
		}
		for kind, ref := range refs {
			if e := meant(kind, ref); e != nil {
				e.LiveRuns = append(e.LiveRuns, use)
			}
		}
	}
	return nil
}

func references(s engine.Scenario) map[string]string {
	return map[string]string{plugin.KindWorkload: s.Workload.Plugin, plugin.KindAdapter: s.Target.Adapter}
}

// Usable tells whether the plugin that a template names may be used: nil also for
// one that is not there yet, for a template may be written before its plugin.
func (l *Library) Usable(ctx context.Context, kind, ref string) error {
	if l.findFixed(kind, ref) != nil {
		return nil
	}
	rows, err := l.uploaded(ctx)
	if err != nil {
		return err
	}
	if p := selectVersion(rows, kind, ref); p != nil && !p.Enabled {
		return disabled(p.PluginRef)
	}
	return nil
}
