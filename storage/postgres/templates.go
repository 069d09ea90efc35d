package postgres

import (
	"context"
	"errors"

	"github.com/jackc/pgx/v5"

	"github.com/loadstone-db/loadstone/engine"
	"github.com/loadstone-db/loadstone/engine/plan/template"
	"github.com/loadstone-db/loadstone/engine/store"
	"github.com/loadstone-db/loadstone/storage/postgres/dberr"
)

const (
	templateColumns = "template_id, template_name, description, config, source, version, created_by, created_at, " +
		"updated_at, access"
	// listedColumns leave out what may be large.
	listedColumns = "template_id, template_name, description, config #- '{workload,feed}' #- '{workload,params}', '', " +
		"version, created_by, created_at, updated_at, access"
)

func toTemplate(row pgx.CollectableRow) (t store.Template, err error) {
	var config []byte
	err = row.Scan(&t.TemplateID, &t.Name, &t.Description, &config, &t.Source, &t.Version, &t.CreatedBy, &t.CreatedAt.Time,
		&t.UpdatedAt.Time, &t.Access)
	if err != nil {
		return t, err
	}
	t.CreatedAt, t.UpdatedAt = engine.At(t.CreatedAt.Time), engine.At(t.UpdatedAt.Time)
	return t, parse("template", config, &t.Config)
}

func (s *Store) template(ctx context.Context, column, value string) (store.Template, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	rows, err := s.pool.Query(ctx, "SELECT "+templateColumns+" FROM test_templates WHERE "+column+" = $1", value)
	if err != nil {
		return store.Template{}, dberr.Failed("reading template", err)
	}
	t, err := pgx.CollectExactlyOneRow(rows, toTemplate)
	return t, dberr.Reading("template", value, err)
}

// Template implements api.TemplateStore.
func (s *Store) Template(ctx context.Context, id string) (store.Template, error) {
	return s.template(ctx, "template_id", id)
}

// TemplateByName implements api.TemplateStore.
func (s *Store) TemplateByName(ctx context.Context, name string) (store.Template, error) {
	return s.template(ctx, "template_name", name)
}

// ListTemplates implements api.TemplateStore; they are ordered by name.
func (s *Store) ListTemplates(ctx context.Context) ([]store.Template, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	rows, err := s.pool.Query(ctx, "SELECT "+listedColumns+" FROM test_templates ORDER BY template_name")
	if err != nil {
		return nil, dberr.Failed("listing templates", err)
	}
	templates, err := pgx.CollectRows(rows, toTemplate)
	return templates, dberr.Failed("listing templates", err)
}

// CreateTemplate implements api.TemplateStore. A source that spells a password in
// a way that cannot be hidden is not kept.
func (s *Store) CreateTemplate(ctx context.Context, t store.Template) (store.Template, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	if err := engine.CheckName("name", t.Name); err != nil {
		return t, err
	}
	if t.TemplateID == "" {
		t.TemplateID = newID()
	}
	config, source, err := s.sealTemplate(ctx, t, nil)
	if err != nil {
		return t, err
	}
	saved := t
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		if err := LockReplayedRun(ctx, tx, t.Config); err != nil {
			return err
		}
		rows, err := tx.Query(ctx,
			`INSERT INTO test_templates (template_id, template_name, description, config, source, created_by, access)
			VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING `+templateColumns, t.TemplateID, t.Name, t.Description, config, source,
			t.CreatedBy, t.Access)
		if err == nil {
			saved, err = pgx.CollectExactlyOneRow(rows, toTemplate)
		}
		return err
	})
	return saved, dberr.Saving("template", t.Name, err)
}

// sealTemplate seals the secrets of every inline connection, and masks those in
// comments of the source. One whose password
// is hidden keeps that of the connection of earlier with the same address.
func (s *Store) sealTemplate(ctx context.Context, t store.Template, earlier *engine.Scenario) (config []byte,
	source string, err error) {
	t.Config = t.Config.Clone()
	if err := s.resolveConnections(ctx, &t.Config); err != nil {
		return nil, "", err
	}
	for _, c := range t.Config.Connections() {
		if c.Ref.Inline() {
			t.Source = template.MaskSecrets(t.Source, *c.Ref, s.secrets)
		}
		if *c.Ref, err = s.sealRef(ctx, *c.Ref, template.SameAddress(earlier, *c.Ref), c.Field); err != nil {
			return nil, "", err
		}
	}
	t.Source = template.MaskRulesIn(t.Source, t.Config.Rules)
	if err := template.SealRules(&t.Config, earlier, s.sealURL); err != nil {
		return nil, "", err
	}
	config, err = document("template", t.Config)
	return config, store.CleanText(string(template.MaskComments([]byte(t.Source)))), err
}

// UpdateTemplate implements api.TemplateStore.
func (s *Store) UpdateTemplate(ctx context.Context, t store.Template) (store.Template, error) {
	ctx, cancel := bounded(ctx)
	defer cancel()
	now, err := s.Template(ctx, t.TemplateID)
	if err == nil && t.Name != now.Name {
		err = engine.CheckName("name", t.Name)
	}
	if err != nil {
		return t, err
	}
	config, source, err := s.sealTemplate(ctx, t, &now.Config)
	if err != nil {
		return t, err
	}
	var saved []store.Template
	err = s.inTx(ctx, func(tx pgx.Tx) error {
		if err := LockReplayedRun(ctx, tx, t.Config); err != nil {
			return err
		}
		var same bool // what its runs do
		err := tx.QueryRow(ctx, `SELECT config - '{name,description}'::text[] = $2::jsonb - '{name,description}'::text[]
			FROM test_templates WHERE template_id = $1 FOR NO KEY UPDATE`, t.TemplateID, config).Scan(&same)
		if err != nil {
			return err
		}
		rows, err := tx.Query(ctx,
			`UPDATE test_templates SET template_name = $3, description = $4, config = $5, source = $6,
				access = $7, version = version + 1, updated_at = now()
			WHERE template_id = $1 AND version = $2 RETURNING `+templateColumns,
			t.TemplateID, t.Version, t.Name, t.Description, config, source, t.Access)
		if err == nil {
			saved, err = pgx.CollectRows(rows, toTemplate)
		}
		if err == nil && len(saved) == 1 && !same {
			err = suspendOthers(ctx, tx, t.TemplateID, t.Editor)
		}
		return err
	})
	if err != nil {
		return t, dberr.Saving("template", t.Name, err)
	}
	if len(saved) == 0 {
		return t, dberr.Conflict("The template was changed by someone else meanwhile.",
			"Load it again and repeat your change.")
	}
	return saved[0], nil
}

// templateInUse is the error of a template that has schedules; refused is what the database said.
func (s *Store) templateInUse(ctx context.Context, id string, refused error) error {
	list, err := listSchedules(ctx, s.pool, `WHERE s.template_id = $1 ORDER BY s.schedule_name COLLATE "C"`, id)
	if err != nil || len(list) == 0 {
		return refused
	}
	names := make([]string, len(list))
	for i, v := range list {
		names[i] = v.Name
	}
	return store.TemplateScheduledError(list[0].TemplateName, names)
}

// DeleteTemplate implements api.TemplateStore. Runs made from it stay; one that has schedules is ErrInUse.
func (s *Store) DeleteTemplate(ctx context.Context, id string) error {
	ctx, cancel := bounded(ctx)
	defer cancel()
	tag, err := s.pool.Exec(ctx, "DELETE FROM test_templates WHERE template_id = $1", id)
	if err = dberr.Failed("deleting template", err); errors.Is(err, store.ErrInUse) {
		return s.templateInUse(ctx, id, err)
	}
	if err != nil {
		return err
	}
	if tag.RowsAffected() == 0 {
		return dberr.NotFound("template", id)
	}
	return nil
}
