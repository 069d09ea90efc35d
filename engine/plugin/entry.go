package plugin

import (
	"errors"

	"github.com/loadstone-db/loadstone/engine"
)

// The sentinel errors of a library of plugins.
var (
	// ErrDisabled: the plugin is there, and nobody may make runs with it now.
	ErrDisabled = errors.New("plugin disabled")
	// ErrDamaged: the stored file is not the one that was uploaded; it is not executed.
	ErrDamaged = errors.New("plugin file damaged")
)

// State says whether runs can be made with a plugin.
type State string

// The states of a plugin.
const (
	StateEnabled  State = "enabled"
	StateDisabled State = "disabled"
	StateDamaged  State = "damaged"
)

// Origin says how a plugin came to the server.
type Origin string

// The origins of a plugin: part of the program, uploaded, or named on the command line.
const (
	OriginBundled     Origin = "bundled"
	OriginUploaded    Origin = "uploaded"
	OriginCommandLine Origin = "command_line"
)

// Use is something that names a plugin.
type Use struct {
	ID   string `json:"id"`
	Name string `json:"name"`
}

// Entry is a plugin with what the library knows of it.
type Entry struct {
	Info
	Enabled bool   `json:"enabled"`
	Bundled bool   `json:"bundled"`
	State   State  `json:"state" enum:"enabled,disabled,damaged"`
	Origin  Origin `json:"origin" enum:"bundled,uploaded,command_line"`
	// Problem says in a sentence why State is damaged.
	Problem string `json:"problem,omitempty"`
	// Default tells that the bare name, without a version, means this one.
	Default    bool        `json:"default"`
	UploadedBy string      `json:"uploaded_by,omitempty"`
	UploadedAt engine.Time `json:"uploaded_at"`
	EnabledBy  string      `json:"enabled_by,omitempty"`
	EnabledAt  engine.Time `json:"enabled_at"`
	Templates  []Use       `json:"templates"` // that name it
	LiveRuns   []Use       `json:"live_runs"` // that execute it now
}
