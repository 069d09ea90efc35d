package postgres

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/storage/keyring"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

// sealedBatch is how many rows are read, and written in one transaction: their locks are held for a moment.
const sealedBatch = 100

// sealedText is one sealed text of a row.
type sealedText struct {
	text, id string
	path     []string
}

// sealedRow is a row with sealed texts.
type sealedRow struct {
	key, text string
	texts     []sealedText
}

// reseal is the row's column with its texts sealed under the current key.
func (r sealedRow) reseal(keys *keyring.Keyring, bound func(key string, path []string) string,
	current string) (string, error) {
	text := r.text
	for _, t := range r.texts {
		if t.id == current {
			continue
		}
		purpose := bound(r.key, t.path)
		plain, err := keys.Open(t.text, purpose)
		if err != nil {
			return "", err
		}
		// Sealed texts are random, and base64 is the same in JSON.
		text = strings.ReplaceAll(text, t.text, keys.Seal(plain, purpose))
	}
	return text, nil
}

// each reads the rows of a place that have sealed texts, in the order of their keys.
func (p sealedPlace) each(ctx context.Context, s *Store, do func([]sealedRow) error) error {
	where := ""
	if p.json {
		where = ` AND position('sealed"' IN ` + p.column + "::text) > 0"
	}
	query := fmt.Sprintf(`SELECT %[1]s, %[2]s::text FROM %[3]s
		WHERE %[2]s IS NOT NULL AND ($1::text IS NULL OR %[1]s > $1)%[4]s ORDER BY %[1]s LIMIT %[5]d`,
		p.key, p.column, p.table, where, sealedBatch)
	var after *string
	for {
		rows, err := s.pool.Query(ctx, query, after)
		if err != nil {
			return dberr.Failed("reading "+p.Name, err)
		}
		list, err := pgx.CollectRows(rows, func(row pgx.CollectableRow) (r sealedRow, err error) {
			return r, row.Scan(&r.key, &r.text)
		})
		if err != nil {
			return dberr.Failed("reading "+p.Name, err)
		}
		if len(list) == 0 {
			return nil
		}
		for i := range list {
			if list[i].texts, err = p.find(list[i].text); err != nil {
				return fmt.Errorf("reading %s %s: %w", p.Name, list[i].key, err)
			}
		}
		if err := do(list); err != nil {
			return err
		}
		after = &list[len(list)-1].key
	}
}

// update writes a row where it is still as it was read.
func (p sealedPlace) update() string {
	kind := "text"
	if p.json {
		kind = "jsonb"
	}
	return fmt.Sprintf("UPDATE %s SET %s = $2::text::%s WHERE %s = $1 AND %s = $3::text::%s", p.table, p.column, kind,
		p.key, p.column, kind)
}

// find lists the sealed texts of a column.
func (p sealedPlace) find(text string) (all []sealedText, err error) {
	if !p.json {
		if id, ok := keyring.KeyID(text); ok {
			all = append(all, sealedText{text: text, id: id})
		}
		return all, nil
	}
	var document any
	if err := json.Unmarshal([]byte(text), &document); err != nil {
		return nil, err
	}
	var walk func(v any, path []string)
	walk = func(v any, path []string) {
		switch v := v.(type) {
		case map[string]any:
			for name, member := range v {
				walk(member, append(path[:len(path):len(path)], name))
			}
		case []any:
			for _, element := range v {
				walk(element, path)
			}
		case string:
			if len(path) == 0 || !strings.HasSuffix(path[len(path)-1], sealedIn) {
				return
			}
			if id, ok := keyring.KeyID(v); ok {
				all = append(all, sealedText{text: v, id: id, path: path})
			}
		}
	}
	walk(document, nil)
	return all, nil
}
