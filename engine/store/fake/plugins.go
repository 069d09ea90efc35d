package fake

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

type pluginRow struct {
	store.Plugin
	wasm   []byte
	number int64
}

func (p *pluginRow) view() store.Plugin {
	out := p.Plugin
	out.Manifest, out.Inspection = bytes.Clone(out.Manifest), bytes.Clone(out.Inspection)
	return out
}

func (s *Store) plugin(sha string) (*pluginRow, error) {
	if p := s.plugins[sha]; p != nil {
		return p, nil
	}
	return nil, notFound("plugin", sha)
}

// SavePlugin implements store.Plugins: a file is known by its hash. A bundled
// file takes the place of the bundled one of the same name and version.
func (s *Store) SavePlugin(ctx context.Context, p store.Plugin) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	if p.SHA256 == "" {
		return unnamed("plugin")
	}
	manifest := bytes.Clone(store.CleanJSON(p.Manifest))
	if old := s.plugins[p.SHA256]; old != nil {
		old.Bundled, old.Enabled, old.Manifest = p.Bundled, p.Enabled, manifest
	} else {
		p.Manifest, p.CreatedAt = manifest, engine.At(now())
		s.plugins[p.SHA256] = &pluginRow{Plugin: p, number: s.next()}
	}
	for _, o := range s.plugins {
		if p.Bundled && o.Bundled && o.SHA256 != p.SHA256 && o.Kind == p.Kind && o.Name == p.Name && o.Version == p.Version {
			o.Enabled = false
		}
	}
	return nil
}

// AddPlugin implements store.Plugins.
func (s *Store) AddPlugin(ctx context.Context, p store.Plugin, wasm []byte,
	limits store.PluginLimits) (up store.PluginUpload, err error) {
	if err := s.lock(ctx); err != nil {
		return up, err
	}
	defer s.mu.Unlock()
	if there := s.plugins[p.SHA256]; there != nil {
		if there.Bundled {
			return up, conflict(fmt.Sprintf("This file is the bundled plugin %s@%s.", there.Name, there.Version),
				"It is there already; nothing needs to be uploaded.")
		}
		there.wasm = bytes.Clone(wasm)
		up.Plugin = there.view()
		return up, nil
	}
	replaced, err := s.replacedUpload(p, limits)
	if err != nil {
		return up, err
	}
	delete(s.plugins, replaced)
	row := &pluginRow{wasm: bytes.Clone(wasm), number: s.next(),
		Plugin: store.Plugin{PluginRef: p.PluginRef, SizeBytes: int64(len(wasm)),
			Manifest: bytes.Clone(store.CleanJSON(p.Manifest)), Inspection: bytes.Clone(store.CleanJSON(p.Inspection)),
			UploadedBy: p.UploadedBy, CreatedAt: engine.At(now())}}
	s.plugins[p.SHA256] = row
	return store.PluginUpload{Plugin: row.view(), Created: true, Replaced: replaced}, nil
}

// replacedUpload finds the upload whose place p may take, "" for none, and checks the limits.
func (s *Store) replacedUpload(p store.Plugin, limits store.PluginLimits) (replaced string, err error) {
	for sha, o := range s.plugins {
		if o.Bundled || o.Kind != p.Kind || o.Name != p.Name || o.Version != p.Version {
			continue
		}
		if !o.EnabledAt.IsZero() {
			return "", conflict(fmt.Sprintf("Version %s of the plugin %s has been uploaded before with other bytes, and has "+
				"been enabled.", p.Version, p.Name),
				"Give the changed plugin another version, so that everyone knows which one a run used.")
		}
		replaced = sha
	}
	versions, files, size := 0, 0, p.SizeBytes
	for sha, o := range s.plugins {
		if o.Bundled || sha == replaced {
			continue
		}
		files++
		size += o.SizeBytes
		if o.Kind == p.Kind && o.Name == p.Name {
			versions++
		}
	}
	const hint = "Delete versions that nothing uses, on the Plugins page."
	switch {
	case limits.Versions > 0 && versions >= limits.Versions:
		return "", conflict(fmt.Sprintf("There are %d versions of the plugin %s, and no more are kept.", versions, p.Name),
			hint)
	case limits.Files > 0 && files >= limits.Files:
		return "", conflict(fmt.Sprintf("There are %d uploaded plugins, and no more are kept.", files), hint)
	case limits.Bytes > 0 && size > limits.Bytes:
		return "", conflict(fmt.Sprintf("The uploaded plugins take more than the %d MB that are kept.", limits.Bytes>>20),
			hint)
	}
	return replaced, nil
}

// Plugin implements store.Plugins.
func (s *Store) Plugin(ctx context.Context, sha string) (store.Plugin, error) {
	if err := s.lock(ctx); err != nil {
		return store.Plugin{}, err
	}
	defer s.mu.Unlock()
	p, err := s.plugin(sha)
	if err != nil {
		return store.Plugin{}, err
	}
	return p.view(), nil
}

// ListPlugins implements store.Plugins; they are ordered by kind, name and age, newest first.
func (s *Store) ListPlugins(ctx context.Context) ([]store.Plugin, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	var out []store.Plugin
	for _, p := range sorted(s.plugins, func(a, b *pluginRow) int {
		return cmp.Or(strings.Compare(a.Kind, b.Kind), strings.Compare(a.Name, b.Name), cmp.Compare(b.number, a.number))
	}) {
		out = append(out, p.view())
	}
	return out, nil
}

// PluginFile implements store.Plugins.
func (s *Store) PluginFile(ctx context.Context, sha string) ([]byte, error) {
	if err := s.lock(ctx); err != nil {
		return nil, err
	}
	defer s.mu.Unlock()
	p := s.plugins[sha]
	if p == nil || p.wasm == nil {
		return nil, notFound("file of the plugin", sha)
	}
	return bytes.Clone(p.wasm), nil
}

// EnablePlugin implements store.Plugins.
func (s *Store) EnablePlugin(ctx context.Context, sha string, enabled bool, by string) (store.Plugin, error) {
	if err := s.lock(ctx); err != nil {
		return store.Plugin{}, err
	}
	defer s.mu.Unlock()
	p, err := s.plugin(sha)
	switch {
	case err != nil:
		return store.Plugin{}, err
	case p.Enabled == enabled:
		return p.view(), nil
	case p.Bundled:
		return p.view(), bundledPlugin(p, "disabled")
	}
	if p.Enabled = enabled; enabled {
		p.EnabledBy, p.EnabledAt = by, engine.At(now())
	}
	return p.view(), nil
}

// DeletePlugin implements store.Plugins.
func (s *Store) DeletePlugin(ctx context.Context, sha string) error {
	if err := s.lock(ctx); err != nil {
		return err
	}
	defer s.mu.Unlock()
	p, err := s.plugin(sha)
	switch {
	case err != nil:
		return err
	case p.Bundled:
		return bundledPlugin(p, "deleted")
	}
	delete(s.plugins, sha)
	return nil
}

func bundledPlugin(p *pluginRow, verb string) error {
	return conflict(fmt.Sprintf("The plugin %s@%s came with Loadstone and cannot be %s.", p.Name, p.Version, verb),
		"Templates that do not name it are not affected by it.")
}
