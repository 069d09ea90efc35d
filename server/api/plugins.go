package api

import (
	"context"
	"net/http"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/engine/plugin"
	"github.com/loadstone-db/loadstone/server/problem"
)

// PluginEntry is a registered plugin with what the register knows of it.
type PluginEntry struct {
	plugin.Info
	Enabled bool `json:"enabled"`
	Bundled bool `json:"bundled"`
}

// PluginList is every registered plugin.
type PluginList struct {
	Plugins []PluginEntry `json:"plugins"`
}

type pluginInput struct {
	Name string `path:"name" maxLength:"200" doc:"name, or name@version, or SHA-256"`
}

func (a *API) registerPlugins() {
	handle(a, op(http.MethodGet, "/api/plugins", "list-plugins", tagPlugins, "List plugins"), func(ctx context.Context, _ *struct{}) (*body[PluginList], error) {
		entries, err := a.plugins(ctx)
		if err != nil {
			return nil, err
		}
		return &body[PluginList]{PluginList{Plugins: entries}}, nil
	})
	inspect := op(http.MethodGet, "/api/plugins/{name}", "get-plugin", tagPlugins, "Inspect a plugin", http.StatusNotFound)
	inspect.Description = "Its manifest with the JSON Schema of its parameters, its imports and exports. Without a version, the one registered last."
	handle(a, inspect, func(ctx context.Context, in *pluginInput) (*body[PluginEntry], error) {
		entries, err := a.plugins(ctx)
		if err != nil {
			return nil, err
		}
		name, version, _ := strings.Cut(in.Name, "@")
		for _, e := range slices.Backward(entries) {
			if e.Name == name && (version == "" || e.Version == version) || e.SHA256 == in.Name {
				return &body[PluginEntry]{e}, nil
			}
		}
		return nil, problem.NotFound("plugin", in.Name)
	})
}

func (a *API) plugins(ctx context.Context) ([]PluginEntry, error) {
	infos, err := a.Plugins.List(ctx)
	if err != nil {
		return nil, err
	}
	stored, err := a.Store.ListPlugins(ctx)
	if err != nil {
		return nil, err
	}
	entries := make([]PluginEntry, 0, len(infos))
	for _, info := range infos {
		e := PluginEntry{Info: info, Enabled: true}
		for _, s := range stored {
			if s.SHA256 == info.SHA256 {
				e.Enabled, e.Bundled = s.Enabled, s.Bundled
			}
		}
		entries = append(entries, e)
	}
	return entries, nil
}
