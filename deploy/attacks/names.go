package main

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"github.com/google/uuid"
)

// names are attacks by a name that is another thing's id.
var names = []attack{
	{2, "a name is another thing's id", idsAsNames},
	{2, "what is named as an id takes its place", namedAsAnID},
}

// named is a saved connection.
type named struct {
	ID   string `json:"connection_id"`
	Name string
	DSN  string
}

// connection saves a connection of a user, which others may not use, and removes it with the returned function.
func (s *stage) connection(ctx context.Context, as string) (c named, drop func(), err error) {
	owner := s.users[as].tokens[0]
	err = owner.Do(ctx, http.MethodPost, "/api/connections", map[string]any{"name": as + " " + uuid.NewString()[:8],
		"driver": "postgres", "dsn": s.dsnAs("target_owner", target), "access": map[string]any{"restricted": true}}, &c)
	return c, func() { _ = owner.Do(ctx, http.MethodDelete, "/api/connections/"+c.ID, nil, nil) }, err
}

// idsAsNames makes and renames things to the id of another operator's connection.
func idsAsNames(ctx context.Context, s *stage) (string, error) {
	victim, drop, err := s.connection(ctx, oscar)
	if err != nil {
		return "", err
	}
	defer drop()
	own, dropOwn, err := s.connection(ctx, olga)
	if err != nil {
		return "", err
	}
	defer dropOwn()
	tried := 0
	for _, id := range []string{victim.ID, strings.ToUpper(victim.ID), strings.ReplaceAll(victim.ID, "-", ""),
		" " + victim.ID,
		"{" + victim.ID + "}"} {
		for i, olgas := range s.users[olga].tokens {
			body := map[string]any{"name": id, "driver": "postgres", "dsn": s.dsnAs("target_owner", target)}
			template := fmt.Sprintf("name: %q\ntarget: {connection: %q, table_name: t}\nworkload: {plugin: mix}\n", id, own.Name)
			for path, try := range map[string]error{
				"POST /api/connections":     olgas.Do(ctx, http.MethodPost, "/api/connections", body, nil),
				"PUT /api/connections/{id}": olgas.Do(ctx, http.MethodPut, "/api/connections/"+own.ID, body, nil),
				"POST /api/templates": olgas.Do(ctx, http.MethodPost, "/api/templates",
					map[string]any{"source": template}, nil),
				"CREATE SINK": olgas.Do(ctx, http.MethodPost, "/api/v1/streams/statements",
					map[string]any{"sql": "CREATE SINK `" + id + "` TYPE PRINT"}, nil),
				"POST /api/v1/run-views": olgas.Do(ctx, http.MethodPost, "/api/v1/run-views", map[string]any{"name": id}, nil),
				"POST /api/users": s.admin[i].Do(ctx, http.MethodPost, "/api/users",
					map[string]any{"name": id, "role": "operator"}, nil),
			} {
				if tried++; refused(try) != nil {
					return "", fmt.Errorf("%s named %q: %w", path, id, refused(try))
				}
			}
		}
	}
	return fmt.Sprintf("%d names refused", tried), nil
}

// namedAsAnID plants what earlier versions let be: a connection of one operator whose name is the id of another's.
func namedAsAnID(ctx context.Context, s *stage) (string, error) {
	victim, drop, err := s.connection(ctx, oscar)
	if err != nil {
		return "", err
	}
	defer drop()
	decoy, dropDecoy, err := s.connection(ctx, olga)
	if err != nil {
		return "", err
	}
	defer dropDecoy()
	rename := func(name string) error {
		_, err := s.sql.Exec(ctx, "SET session_replication_role = replica") // no trigger
		if err == nil {
			_, err = s.sql.Exec(ctx, "UPDATE connections SET connection_name = $1 WHERE connection_id = $2", name, decoy.ID)
		}
		_, back := s.sql.Exec(ctx, "SET session_replication_role = origin")
		return errors.Join(err, back)
	}
	if err := rename(victim.ID); err != nil {
		return "", err
	}
	defer func() { _ = rename(decoy.Name) }()
	for i := range s.servers {
		oscars, olgas := s.users[oscar].tokens[i], s.users[olga].tokens[i]
		var found named
		if err := oscars.Do(
			ctx,
			http.MethodGet,
			"/api/connections/"+victim.ID,
			nil,
			&found,
		); err != nil ||
			found.ID != victim.ID {
			return "", fmt.Errorf("the id finds %+v: %w", found, err)
		}
		source := fmt.Sprintf(
			"name: %s\ntarget: {connection: %q, table_name: t}\nworkload: {plugin: mix}\n",
			uuid.NewString()[:8],
			victim.ID,
		)
		sink := fmt.Sprintf("CREATE SINK s%s TYPE POSTGRES SET('%s' AS SINK.CONNECTION, 'pg_class' AS SINK.TABLE)",
			uuid.NewString()[:8], victim.ID)
		for path, body := range map[string]map[string]any{
			"/api/runs": {"source": source}, "/api/preflight": {"source": source},
			"/api/statements/catalog":    {"connection": victim.ID},
			"/api/v1/streams/statements": {"sql": sink},
		} {
			if err := refused(olgas.Do(ctx, http.MethodPost, path, body, nil)); err != nil {
				return "", fmt.Errorf("%s of who may not use it: %w", path, err)
			}
		}
		// A password that an admin gives the one does not come into the other.
		var sealed, now string
		const of = "SELECT dsn_sealed FROM connections WHERE connection_id = $1"
		if err := s.sql.QueryRow(ctx, of, decoy.ID).Scan(&sealed); err != nil {
			return "", err
		}
		if err := s.admin[i].Do(
			ctx,
			http.MethodPut,
			"/api/connections/"+victim.ID,
			map[string]any{"name": victim.Name + " new",
				"driver": "postgres", "dsn": s.dsnAs("target_owner", target) + "&application_name=renamed"},
			nil,
		); err != nil {
			return "", err
		}
		if err := s.sql.QueryRow(ctx, of, decoy.ID).Scan(&now); err != nil || now != sealed {
			return "", fmt.Errorf("the rename was saved into the other connection: %w", err)
		}
	}
	return "the id's owner is what is found, by API, run, preflight, statement and sink", nil
}
