// Package expression reads expressions of Snowflake's SQL and writes them for
// Postgres: operators, casts, paths into JSON, functions, aggregates and windows.
//
// Every function comes from a list (funcs.go for those that are one expression of
// Postgres, special.go for the others), so that no statement reaches more of Postgres
// than the stand-in means to offer; one that is not in the list is unknown, 002140.
//
// Parser is what all statements are read with. It completes names from the session,
// looks tables up, checks privileges, and collects what the plan needs: parameters,
// tables, steps to be taken before. Its methods fail as those of syntax.Cursor do.
package expression
