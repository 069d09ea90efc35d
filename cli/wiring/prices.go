package wiring

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/rs/zerolog"

	"github.com/loadstone-db/loadstone/cli/input"
	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/cost"
)

// maxPrices is the most bytes of a price list.
const maxPrices = 1 << 20

// openPrices returns the price list as it is now: of the file that the user names,
// else of prices.yaml in the data directory, else the default. A list that
// is wrong at the start is an error; one that becomes wrong is logged, and the last good one stays.
func openPrices(named, dir string, log zerolog.Logger) (func() cost.Prices, error) {
	path := named
	if path == "" {
		path = filepath.Join(dir, "prices.yaml")
	}
	var (
		mu   sync.Mutex
		last = cost.Default()
		read time.Time // of the file that last is from
	)
	load := func() error {
		info, err := os.Stat(path)
		if errors.Is(err, fs.ErrNotExist) && named == "" {
			last, read = cost.Default(), time.Time{}
			return nil
		}
		if err != nil {
			return fmt.Errorf("the price list cannot be read: %w", err)
		}
		if info.ModTime().Equal(read) {
			return nil
		}
		read = info.ModTime()
		if !info.Mode().IsRegular() {
			return errors.New("the price list is not a regular file")
		}
		text, err := input.Bounded("The price list", path, maxPrices)
		if err != nil {
			return err
		}
		prices, err := cost.Parse(text)
		if err != nil {
			return err
		}
		last = prices
		return nil
	}
	if err := load(); err != nil {
		wrong := &engine.Error{Code: engine.CodeInvalid, Message: fmt.Sprintf("%s: %v.", path, err),
			Hint: "compare it with what loadstone prices prints", Cause: err}
		var list *engine.Error
		if errors.As(err, &list) {
			wrong.Message, wrong.Hint, wrong.Fields = path+": "+list.Message, list.Hint, list.Fields
		}
		return nil, wrong
	}
	return func() cost.Prices {
		mu.Lock()
		defer mu.Unlock()
		if err := load(); err != nil {
			log.Warn().Err(err).Str("file", path).Msg("the price list is wrong; the last good one stays")
		}
		return last
	}, nil
}
