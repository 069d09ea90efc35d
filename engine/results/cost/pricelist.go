// This part says which price list costs are reckoned with: of the file that the command line names, else the
// one that admins have saved for all servers, else prices.yaml of the data directory, else the one that is built in.

package cost

import (
	"context"
	"encoding/json"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/store"
)

// Setting is the name under which the store keeps the list.
const Setting = "prices"

// Origin says where a list is from.
type Origin string

// The places, the first that has one counts.
const (
	FromFlag  Origin = "flag"
	FromSaved Origin = "saved"
	FromFile  Origin = "file"
	BuiltIn   Origin = "built_in"
)

// List is a price list as it is in use.
type List struct {
	Text   string
	Prices Prices
	From   Origin
	// File is its path; empty of one that is in no file.
	File string
	// Version is that of the saved one, 0 before any was saved.
	Version   int64
	UpdatedBy string
	UpdatedAt engine.Time
	// Problem is why a list that comes before this one is not used; empty where none is wrong.
	Problem string
}

const (
	// refreshInterval is how soon a list that another server has saved is seen.
	refreshInterval = 5 * time.Second
	// storeTimeout is how long who needs prices waits for the store.
	storeTimeout = 2 * time.Second
)

// Source is the price list as it is now. It is safe for concurrent use.
type Source struct {
	named bool
	log   zerolog.Logger

	mu   sync.Mutex
	file file
	// settings is where a list is saved; nil until there is a store.
	settings    store.Settings
	refreshedAt time.Time
	// refreshing is there while somebody asks the store, and closed then: who needs prices meanwhile has the last ones.
	// Only before the first answer, when there are none, everybody waits.
	refreshing chan struct{}
	saved      store.Setting
	// text and prices are those of saved; problem is why they cannot be used.
	text    string
	prices  Prices
	problem string
}

// Open returns the list of the file that is named, else of prices.yaml in the directory, else the one that is built in.
// A list that is wrong is an error; one that becomes wrong later is logged, and the last good one stays.
func Open(named, dir string, log zerolog.Logger) (*Source, error) {
	s := &Source{named: named != "", log: log, file: file{path: named, required: named != ""}}
	if !s.named {
		s.file.path = filepath.Join(dir, "prices.yaml")
	}
	if err := s.file.load(); err != nil {
		return nil, s.file.loadError(err)
	}
	return s, nil
}

// UseStore has lists saved in a store.
func (s *Source) UseStore(in store.Settings) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.settings, s.refreshedAt = in, time.Time{}
}

// Prices is the list as it is now. A store that is away leaves the last one.
func (s *Source) Prices() Prices { return s.Current(context.Background()).Prices }

// Current is the list with where it is from. A store that stands still costs one caller two seconds each five, and the
// others nothing.
func (s *Source) Current(ctx context.Context) List {
	s.refresh(ctx)
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.file.load(); err != nil {
		s.log.Warn().Err(err).Str("file", s.file.path).Msg("the price list is wrong; the last good one stays")
	}
	l := List{Version: s.saved.Version, UpdatedBy: s.saved.UpdatedBy, UpdatedAt: s.saved.UpdatedAt, Problem: s.problem}
	switch {
	case !s.named && s.text != "" && s.problem == "":
		l.Text, l.Prices, l.From = s.text, s.prices, FromSaved
	default:
		l.Text, l.Prices, l.From, l.File = s.file.text, s.file.prices, s.file.origin(), s.file.shownPath()
	}
	return l
}

// refresh reads what was saved, where it was not read lately.
func (s *Source) refresh(ctx context.Context) {
	s.mu.Lock()
	in, had, asking, first := s.settings, s.saved.Version, s.refreshing, s.refreshedAt.IsZero()
	due := in != nil && asking == nil && time.Since(s.refreshedAt) > refreshInterval
	if due {
		s.refreshing = make(chan struct{})
	}
	s.mu.Unlock()
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	if !due {
		if asking != nil && first {
			select {
			case <-asking:
			case <-ctx.Done():
			}
		}
		return
	}
	saved, err := in.Setting(ctx, Setting)
	s.mu.Lock()
	defer s.mu.Unlock()
	close(s.refreshing)
	s.refreshing, s.refreshedAt = nil, time.Now()
	switch {
	case err != nil:
		s.log.Warn().Err(err).Msg("the saved price list cannot be read; the last one stays")
	case s.saved.Version == had && saved.Version != had: // this server may have saved another meanwhile
		s.apply(saved)
	}
}

type document struct {
	Text string `json:"text"`
}

// apply makes a saved list that of the source; it holds the lock.
func (s *Source) apply(saved store.Setting) {
	s.saved, s.text, s.problem = saved, "", ""
	var d document
	if len(saved.Value) > 0 {
		if err := json.Unmarshal(saved.Value, &d); err != nil {
			s.problem = "what is saved is not a price list"
			return
		}
	}
	if strings.TrimSpace(d.Text) == "" {
		return
	}
	prices, err := Parse([]byte(d.Text))
	if err != nil {
		// Another version of the program may have saved it.
		s.problem = engine.AsError(err).Error()
		return
	}
	s.text, s.prices = d.Text, prices
}

// Save has all servers reckon with a list; an empty one takes what was saved away. version is that which was edited.
// Its error names every wrong field and its line.
func (s *Source) Save(ctx context.Context, text string, version int64, by string) (List, error) {
	if s.named {
		return List{}, &engine.Error{Code: engine.CodeConflict,
			Message: fmt.Sprintf("This server reckons with the file %s, which --prices names.", s.file.path),
			Hint:    "change the file, or start the server without --prices"}
	}
	if strings.TrimSpace(text) == "" {
		text = ""
	} else if _, err := Parse([]byte(text)); err != nil {
		return List{}, err
	}
	value, err := json.Marshal(document{text})
	if err != nil {
		return List{}, fmt.Errorf("writing the price list: %w", err)
	}
	s.mu.Lock()
	in := s.settings
	s.mu.Unlock()
	saved, err := in.SaveSetting(ctx, store.Setting{Name: Setting, Value: value, Version: version, UpdatedBy: by})
	if err != nil {
		return List{}, err
	}
	s.mu.Lock()
	if saved.Version > s.saved.Version {
		s.apply(saved)
	}
	s.mu.Unlock()
	return s.Current(ctx), nil
}
