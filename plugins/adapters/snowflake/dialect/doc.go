// Package dialect writes Snowflake's SQL for its adapters: names, constants, the
// statements of workloads, and the expressions by which a table fills itself. It asks
// the account for nothing and knows of no type of table.
package dialect
