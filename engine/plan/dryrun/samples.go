package dryrun

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plugin"
)

// ownSQL is the workload whose generators are sampled.
const ownSQL = "sql"

// tableGenerators are the generators that draw from a table, which is not looked at for samples.
var tableGenerators = []string{"key", "new_key", "row"}

// GeneratorSample is what a generator makes.
type GeneratorSample struct {
	Name   string           `json:"name"`
	Type   engine.ValueType `json:"type,omitempty"`
	Values []*string        `json:"values"`
	// NeedsTable: it draws from the table, so that a trial shows its values.
	NeedsTable bool `json:"needs_table"`
	// Problem says what is wrong with its parameters.
	Problem string `json:"problem,omitempty"`
}

// Samples has the generators of parameters make values, without a database. Each of binds is as in the parameters of
// the workload sql.
func (b *Runner) Samples(ctx context.Context, binds []json.RawMessage) ([]GeneratorSample, error) {
	ctx, cancel := context.WithTimeout(ctx, totalTimeout)
	defer cancel()
	w, err := b.Deps.Plugins.Workload(ctx, ownSQL)
	if err != nil {
		return nil, fmt.Errorf("opening the workload %s: %w", ownSQL, err)
	}
	list := make([]GeneratorSample, len(binds))
	for i, text := range binds {
		if list[i], err = sample(ctx, w, text); err != nil {
			return nil, err
		}
	}
	return list, nil
}

func sample(ctx context.Context, w plugin.Workload, text json.RawMessage) (GeneratorSample, error) {
	out := GeneratorSample{Values: []*string{}}
	bind := map[string]any{}
	if err := json.Unmarshal(text, &bind); err != nil {
		out.Problem = "is not a group of fields"
		return out, nil //nolint:nilerr // it is the caller's document, and told as such
	}
	out.Name, _ = bind["name"].(string)
	generator, _ := bind["generator"].(string)
	if slices.Contains(tableGenerators, generator) {
		out.NeedsTable = true
		return out, nil
	}
	if ref, _ := bind["ref"].(string); ref != "" {
		return out, nil // it is made by another statement
	}
	const name = "sample"
	bind["name"] = name
	params, err := json.Marshal(map[string]any{"statements": []any{
		map[string]any{"id": name, "sql": "SELECT :" + name, "binds": []any{bind}}}})
	if err != nil {
		return out, fmt.Errorf("writing parameters: %w", err)
	}
	wanted, err := w.Statements(ctx, params, nil)
	if err == nil && len(wanted) == 1 && len(wanted[0].Binds) == 1 {
		out.Type = wanted[0].Binds[0].Type
		out.Values, err = first(ctx, w, params, wanted[0])
	}
	if errors.Is(err, plugin.ErrFailed) {
		out.Problem = cleanMessage(err.Error())
		return out, nil
	}
	return out, err
}

func first(ctx context.Context, w plugin.Workload, params json.RawMessage, s plugin.Statement) ([]*string, error) {
	stream, err := w.Open(ctx, plugin.OpenRequest{Seed: 1, KeySlots: 1, Params: params},
		[]engine.Statement{{ID: s.ID, Kind: s.Kind, SQL: "SELECT $1", Binds: s.Binds}})
	if err != nil {
		return []*string{}, err
	}
	defer func() { _ = stream.Close() }()
	var batch plugin.Batch
	if err := stream.Fill(&batch, sampleCount); err != nil {
		return []*string{}, err
	}
	list := []*string{}
	for _, op := range batch.Ops {
		if args := values(&batch, op); len(args) == 1 {
			list = append(list, args[0].shown())
		}
	}
	return list, nil
}

// cleanMessage takes the place in the made-up parameters out of what the plugin says of one.
func cleanMessage(text string) string {
	if _, says, found := strings.Cut(text, "binds[0]"); found {
		text = strings.TrimLeft(strings.TrimPrefix(says, " (:sample)"), ".: ")
	}
	return strings.TrimSuffix(text, ".")
}
