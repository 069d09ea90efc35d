-- Tables of offices, clinics and shops, from memory of public schemas: AdventureWorks, employees, Odoo, OpenMRS, WordPress.

--= "HumanResources"."Department"
CREATE SCHEMA "HumanResources";
CREATE DOMAIN "Name" AS varchar(50);
CREATE DOMAIN "Flag" AS boolean NOT NULL;
CREATE TABLE "HumanResources"."Department" ("DepartmentID" serial PRIMARY KEY, "Name" "Name" NOT NULL UNIQUE,
  "GroupName" "Name" NOT NULL, "ModifiedDate" timestamp NOT NULL DEFAULT now());
INSERT INTO "HumanResources"."Department" ("Name", "GroupName") SELECT 'd' || g, 'g' FROM generate_series(1, 150) g;

--= "HumanResources"."Employee"
CREATE TABLE "HumanResources"."Employee" ("BusinessEntityID" int PRIMARY KEY, "NationalIDNumber" varchar(15) NOT NULL,
  "LoginID" varchar(256) NOT NULL, "OrganizationNode" varchar DEFAULT '/', "JobTitle" varchar(50) NOT NULL, "BirthDate" date NOT NULL,
  "MaritalStatus" char(1) NOT NULL, "Gender" char(1) NOT NULL, "HireDate" date NOT NULL, "SalariedFlag" "Flag" NOT NULL
  DEFAULT true, "VacationHours" smallint NOT NULL DEFAULT 0, rowguid uuid NOT NULL DEFAULT gen_random_uuid(),
  CONSTRAINT "CK_Employee_BirthDate" CHECK ("BirthDate" >= '1930-01-01' AND "BirthDate" <= now() - interval '18 years'),
  CONSTRAINT "CK_Employee_MaritalStatus" CHECK (upper("MaritalStatus") IN ('M', 'S')),
  CONSTRAINT "CK_Employee_HireDate" CHECK ("HireDate" >= '1996-07-01' AND "HireDate" <= now() + interval '1 day'),
  CONSTRAINT "CK_Employee_Gender" CHECK (upper("Gender") IN ('M', 'F')),
  CONSTRAINT "CK_Employee_VacationHours" CHECK ("VacationHours" >= -40 AND "VacationHours" <= 240));
INSERT INTO "HumanResources"."Employee" ("BusinessEntityID", "NationalIDNumber", "LoginID", "JobTitle", "BirthDate",
  "MaritalStatus", "Gender", "HireDate") SELECT g, g::text, 'l' || g, 'j', '1970-01-01', 'M', 'f', '2010-01-01'
  FROM generate_series(1, 300) g;

--= "HumanResources"."EmployeeDepartmentHistory" UPDATE=EndDate
CREATE TABLE "HumanResources"."EmployeeDepartmentHistory" ("BusinessEntityID" int NOT NULL REFERENCES
  "HumanResources"."Employee" ON DELETE CASCADE, "DepartmentID" int NOT NULL REFERENCES "HumanResources"."Department"
  ON DELETE CASCADE, "ShiftID" smallint NOT NULL, "StartDate" date NOT NULL, "EndDate" date,
  PRIMARY KEY ("BusinessEntityID", "StartDate", "DepartmentID", "ShiftID"),
  CHECK ("EndDate" >= "StartDate" OR "EndDate" IS NULL));
INSERT INTO "HumanResources"."EmployeeDepartmentHistory" SELECT g, 1 + g % 100, 1, '2010-01-01', '2012-01-01'
  FROM generate_series(1, 300) g;

--= "Sales"."SpecialOffer"
CREATE SCHEMA "Sales";
CREATE TABLE "Sales"."SpecialOffer" ("SpecialOfferID" serial PRIMARY KEY, "Description" varchar(255) NOT NULL, "DiscountPct"
  numeric NOT NULL DEFAULT 0.00 CHECK ("DiscountPct" >= 0), "StartDate" timestamp NOT NULL, "EndDate" timestamp NOT NULL,
  "MinQty" int NOT NULL DEFAULT 0, "MaxQty" int, CHECK ("EndDate" >= "StartDate"), CHECK ("MinQty" >= 0), CHECK ("MaxQty" >= 0));
INSERT INTO "Sales"."SpecialOffer" ("Description", "StartDate", "EndDate", "MaxQty") SELECT 'o', now(),
  now() + interval '9 days', g FROM generate_series(1, 300) g;

--= employee
CREATE TABLE employee (id bigserial PRIMARY KEY, birth_date date NOT NULL, first_name varchar(14) NOT NULL,
  last_name varchar(16) NOT NULL, gender char(1) NOT NULL CHECK (gender ~ '^[MF]$'), hire_date date NOT NULL);
INSERT INTO employee (birth_date, first_name, last_name, gender, hire_date) SELECT '1970-01-01', 'f' || g, 'l', 'M',
  '2000-01-01' FROM generate_series(1, 300) g;

--= department_employee
CREATE TABLE department (id char(4) PRIMARY KEY, dept_name varchar(40) NOT NULL UNIQUE);
INSERT INTO department SELECT 'd' || to_char(g, 'FM000'), 'n' || g FROM generate_series(1, 20) g;
CREATE TABLE department_employee (employee_id bigint NOT NULL REFERENCES employee ON DELETE CASCADE, department_id char(4)
  NOT NULL REFERENCES department ON DELETE CASCADE, from_date date NOT NULL, to_date date NOT NULL,
  PRIMARY KEY (employee_id, department_id));
INSERT INTO department_employee SELECT g, 'd' || to_char(1 + g % 20, 'FM000'), now(), now() FROM generate_series(1, 290) g;

--= department
INSERT INTO department SELECT 'x' || to_char(g, 'FM000'), 'x' || g FROM generate_series(1, 100) g;

--= salary
CREATE TABLE salary (employee_id bigint REFERENCES employee ON DELETE CASCADE, amount bigint NOT NULL, from_date date,
  to_date date NOT NULL, PRIMARY KEY (employee_id, from_date));
INSERT INTO salary SELECT 1 + g % 290, g, date '2000-01-01' + g, date '2001-01-01' + g FROM generate_series(1, 300) g;

--= res_partner
CREATE TABLE res_company (id serial PRIMARY KEY, name varchar NOT NULL, partner_id int);
CREATE TABLE res_partner (id serial PRIMARY KEY, company_id int REFERENCES res_company ON DELETE SET NULL, name varchar,
  parent_id int REFERENCES res_partner ON DELETE SET NULL, lang varchar, active boolean, type varchar, color int, credit_limit
  double precision, commercial_partner_id int REFERENCES res_partner ON DELETE SET NULL, partner_latitude numeric,
  CONSTRAINT res_partner_check_name CHECK ((type = 'contact' AND name IS NOT NULL) OR type <> 'contact'));
ALTER TABLE res_company ADD FOREIGN KEY (partner_id) REFERENCES res_partner ON DELETE SET NULL;
INSERT INTO res_partner (name, type) SELECT 'p' || g, 'contact' FROM generate_series(1, 300) g;
INSERT INTO res_company (name, partner_id) SELECT 'c' || g, g FROM generate_series(1, 10) g;
UPDATE res_partner SET company_id = 1 + id % 10;

--= res_company
COMMENT ON TABLE res_company IS 'refers to its partners, and they to it';

--= account_move_line
CREATE TABLE account_account (id serial PRIMARY KEY, code varchar(64) NOT NULL);
INSERT INTO account_account (code) SELECT 'a' || g FROM generate_series(1, 20) g;
CREATE TABLE account_move_line (id serial PRIMARY KEY, account_id int NOT NULL REFERENCES account_account ON DELETE RESTRICT,
  debit numeric NOT NULL, credit numeric NOT NULL, balance numeric, display_type varchar NOT NULL, quantity numeric,
  CONSTRAINT check_credit_debit CHECK (display_type IN ('line_section', 'line_note') OR credit * debit = 0),
  CONSTRAINT check_amount CHECK (debit + credit >= 0));
INSERT INTO account_move_line (account_id, debit, credit, display_type) SELECT 1 + g % 20, g, 0, 'product'
  FROM generate_series(1, 300) g;

--= res_groups_users_rel UPDATE=key POINT_LOOKUP=key RANGE_SCAN=key DELETE=key
CREATE TABLE res_groups (id serial PRIMARY KEY, name jsonb NOT NULL);
INSERT INTO res_groups (name) SELECT '{}' FROM generate_series(1, 40);
CREATE TABLE res_groups_users_rel (gid int NOT NULL REFERENCES res_groups ON DELETE CASCADE, uid int NOT NULL REFERENCES
  res_partner ON DELETE CASCADE);
INSERT INTO res_groups_users_rel SELECT 1 + g % 40, g FROM generate_series(1, 200) g;

--= ir_config_parameter
CREATE TABLE ir_config_parameter (id serial PRIMARY KEY, key varchar NOT NULL, value text NOT NULL, create_date timestamp,
  CONSTRAINT ir_config_parameter_key_uniq UNIQUE (key));
INSERT INTO ir_config_parameter (key, value) SELECT 'k.' || g, 'v' FROM generate_series(1, 300) g;

--= patient_identifier
CREATE TABLE patient (patient_id int GENERATED BY DEFAULT AS IDENTITY PRIMARY KEY, voided smallint NOT NULL DEFAULT 0);
INSERT INTO patient (voided) SELECT 0 FROM generate_series(1, 200);
CREATE TABLE patient_identifier (patient_identifier_id serial PRIMARY KEY, patient_id int NOT NULL REFERENCES patient,
  identifier varchar(50) NOT NULL DEFAULT '', identifier_type int NOT NULL DEFAULT 0, preferred smallint NOT NULL DEFAULT 0,
  uuid char(38) NOT NULL UNIQUE, date_voided timestamp, void_reason varchar(255));
INSERT INTO patient_identifier (patient_id, identifier, uuid) SELECT 1 + g % 200, 'i' || g, gen_random_uuid()
  FROM generate_series(1, 300) g;

--= obs
CREATE TABLE obs (obs_id serial PRIMARY KEY, person_id int NOT NULL REFERENCES patient, concept_id int NOT NULL,
  obs_datetime timestamp NOT NULL, obs_group_id int REFERENCES obs, value_coded int, value_numeric double precision,
  value_text text, uuid char(38) NOT NULL UNIQUE, status varchar(16) NOT NULL DEFAULT 'FINAL');
INSERT INTO obs (person_id, concept_id, obs_datetime, uuid) SELECT 1 + g % 200, g, now(), gen_random_uuid()
  FROM generate_series(1, 300) g;

--= wp_posts
CREATE TABLE wp_posts ("ID" bigserial PRIMARY KEY, post_author bigint NOT NULL DEFAULT 0, post_date timestamp NOT NULL
  DEFAULT '1970-01-01', post_content text NOT NULL, post_title text NOT NULL, post_status varchar(20) NOT NULL DEFAULT 'publish',
  post_name varchar(200) NOT NULL DEFAULT '', menu_order int NOT NULL DEFAULT 0, comment_count bigint NOT NULL DEFAULT 0);
INSERT INTO wp_posts (post_content, post_title) SELECT 'c', 't' || g FROM generate_series(1, 300) g;

--= wp_options
CREATE TABLE wp_options (option_id bigserial PRIMARY KEY, option_name varchar(191) NOT NULL DEFAULT '' UNIQUE,
  option_value text NOT NULL, autoload varchar(20) NOT NULL DEFAULT 'yes');
INSERT INTO wp_options (option_name, option_value) SELECT 'o' || g, 'v' FROM generate_series(1, 300) g;

--= wp_term_relationships
CREATE TABLE wp_term_relationships (object_id bigint NOT NULL DEFAULT 0, term_taxonomy_id bigint NOT NULL DEFAULT 0,
  term_order int NOT NULL DEFAULT 0, PRIMARY KEY (object_id, term_taxonomy_id));
INSERT INTO wp_term_relationships SELECT g, g % 7 FROM generate_series(1, 300) g;
