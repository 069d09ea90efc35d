// Package query holds the answers to SQL over results: columns and rows.
package query

import "context"

// Column is one of an answer.
type Column struct {
	Name string `json:"name"`
	Type string `json:"type" doc:"As the database names it."`
}

// Answer is what a query gave. Values are null, true or false, numbers, JSON documents of json columns, and text for
// everything else, as the database writes it.
type Answer struct {
	Columns []Column `json:"columns" nullable:"false"`
	Rows    [][]any  `json:"rows" nullable:"false"`
	// Truncated: there were more rows than were asked for, or than an answer holds.
	Truncated bool    `json:"truncated"`
	ElapsedMs float64 `json:"elapsed_ms"`
}

// Asker answers queries: one statement that reads, with at most so many rows.
type Asker interface {
	Query(ctx context.Context, sql string, rows int) (Answer, error)
}
