package engine

import (
	"fmt"
	"slices"
	"strings"
	"unicode/utf8"
)

// Matrix names several targets in place of one: the same workload, with the same seed, runs on each in turn.
type Matrix struct {
	Targets []MatrixTarget `json:"targets"`
	// StopOnFailure cancels what has not run when a target's run does not complete.
	StopOnFailure bool `json:"stop_on_failure"`
}

// MatrixTarget is a target with the name that it has in the comparison.
type MatrixTarget struct {
	Label string `json:"label"`
	Target
}

// MatrixMember is a run's place in a matrix.
type MatrixMember struct {
	MatrixID string `json:"matrix_id,omitempty"`
	// MatrixIndex counts from 0; the first one is the baseline.
	MatrixIndex int    `json:"matrix_index,omitempty"`
	MatrixLabel string `json:"matrix_label,omitempty"`
}

// maxRunName is the longest name of a run, in characters.
const maxRunName = 200

// Expand returns the scenario of each target of a matrix, in order; of a scenario with one target, itself.
func (s Scenario) Expand() []Scenario {
	if s.Matrix == nil {
		return []Scenario{s}
	}
	var out []Scenario
	for _, t := range s.Matrix.Targets {
		one := s
		one.Matrix, one.Target = nil, t.Target
		room := maxRunName - utf8.RuneCountInString(" · "+t.Label)
		name := []rune(s.Name)
		one.Name = string(name[:max(min(len(name), room), 0)]) + " · " + t.Label
		out = append(out, one)
	}
	return out
}

// AllowWrites lets the run, or every run of the matrix, write to tables that Loadstone did not make.
func (s *Scenario) AllowWrites() {
	if s.Matrix == nil {
		s.Target.AllowWrites = true
		return
	}
	m := *s.Matrix
	m.Targets = slices.Clone(m.Targets)
	for i := range m.Targets {
		m.Targets[i].AllowWrites = true
	}
	s.Matrix = &m
}

// MatrixField is the path that a field of a member's target has in its matrix: target.adapter of the second target is
// matrix.targets[1].adapter. Fields that all members share stay as they are.
func MatrixField(index int, field string) string {
	if rest, ok := strings.CutPrefix(field, "target"); ok && (rest == "" || rest[0] == '.') {
		return fmt.Sprintf("matrix.targets[%d]%s", index, rest)
	}
	return field
}

// Clone returns a copy whose targets can be changed without changing s.
func (s Scenario) Clone() Scenario {
	if s.Matrix != nil {
		m := *s.Matrix
		m.Targets = slices.Clone(m.Targets)
		s.Matrix = &m
	}
	s.Rules = slices.Clone(s.Rules)
	return s
}

// Connection is a connection of a scenario and the path of its field.
type Connection struct {
	Field string
	Ref   *ConnectionRef
	// ID is the target's ConnectionID.
	ID *string
}

// Connections are those of the scenario's target, or of each target of its matrix. The references point into s.
func (s *Scenario) Connections() []Connection {
	if s.Matrix == nil {
		return []Connection{{"target.connection", &s.Target.Connection, &s.Target.ConnectionID}}
	}
	var list []Connection
	for i := range s.Matrix.Targets {
		t := &s.Matrix.Targets[i]
		list = append(list, Connection{fmt.Sprintf("matrix.targets[%d].connection", i), &t.Connection, &t.ConnectionID})
	}
	return list
}

// MatrixRun is a matrix as it stands: a row of matrices with its runs.
type MatrixRun struct {
	MatrixID      string   `json:"matrix_id"`
	Name          string   `json:"name"`
	TemplateID    string   `json:"template_id,omitempty"`
	Labels        []string `json:"labels"`
	StopOnFailure bool     `json:"stop_on_failure"`
	// Status is PREPARED, RUNNING, CANCELLING while what runs is drained, and then
	// COMPLETED when every run did, CANCELLED when a user stopped it, else FAILED.
	Status    Status `json:"status"`
	StartTime Time   `json:"start_time"`
	EndTime   Time   `json:"end_time"`
	CreatedBy string `json:"created_by,omitempty"`
	CreatedAt Time   `json:"created_at"`
	// Owner is the server that makes its runs, or did last; empty before the start.
	Owner string `json:"-"`
}
