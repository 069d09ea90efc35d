// Generated from docs/openapi.json with `npm run types`; do not edit.

export interface paths {
    "/api/audit": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read who did what, the newest first */
        get: {
            parameters: {
                query?: {
                    /** @description run.start, or run for all that begin so. */
                    action?: string;
                    /** @description next_before of the page before. */
                    before?: number;
                    limit?: number;
                    /** @description A part of what it was done to, or of the detail, in any case. */
                    object?: string;
                    outcome?: "done" | "refused" | "failed";
                    /** @description RFC 3339. */
                    since?: string;
                    /** @description RFC 3339; lines at this time and later are left out. */
                    until?: string;
                    /** @description A user's id, or a part of the name in any case. */
                    user?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AuditPage"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/audit/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read the audit log as a file */
        get: {
            parameters: {
                query?: {
                    /** @description run.start, or run for all that begin so. */
                    action?: string;
                    format?: "csv" | "json";
                    /** @description A part of what it was done to, or of the detail, in any case. */
                    object?: string;
                    outcome?: "done" | "refused" | "failed";
                    /** @description RFC 3339. */
                    since?: string;
                    /** @description RFC 3339; lines at this time and later are left out. */
                    until?: string;
                    /** @description A user's id, or a part of the name in any case. */
                    user?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description A file */
                200: {
                    headers: {
                        "Content-Disposition"?: string;
                        "Content-Type"?: string;
                        "Loadstone-Truncated"?: string;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": Record<string, never>[];
                        "text/csv": string;
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/audit/retention": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read for how long the audit log is kept */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AuditRetention"];
                    };
                };
            };
        };
        /** Say for how long the audit log is kept */
        put: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["AuditRetentionChange"];
                };
            };
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["AuditRetention"];
                    };
                };
            };
        };
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/me": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Who makes this request */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Me"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/oidc/callback": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Take a browser back from the sign-in provider */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: never;
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/oidc/start": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Send a browser to the sign-in provider */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: never;
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/password": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Choose another password; your other sessions end */
        put: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["PasswordInputBody"];
                };
            };
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        "Set-Cookie"?: string;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Signed"];
                    };
                };
            };
        };
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/signin": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Exchange a one-time token for a session */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["SignInInputBody"];
                };
            };
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        "Set-Cookie"?: string;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Signed"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/signin-links": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Make a link that signs in once, within an hour; those before it end */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Created */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Link"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/signout": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** End the session */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description No Content */
                204: {
                    headers: {
                        "Set-Cookie"?: string;
                        [name: string]: unknown;
                    };
                    content?: never;
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List your API tokens, or your sessions */
        get: {
            parameters: {
                query?: {
                    /** @description API tokens, or the sessions of browsers. */
                    kind?: "api" | "session";
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["TokenList"];
                    };
                };
            };
        };
        put?: never;
        /** Create an API token; its secret is shown once */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["TokenInputBody"];
                };
            };
            responses: {
                /** @description Created */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["NewToken"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/tokens/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Revoke an API token, or end a session */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description No Content */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/totp": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Whether you have a second factor */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["State"];
                    };
                };
            };
        };
        put?: never;
        /** Make the secret of a second factor (TOTP), by the password; it counts once a code of it was confirmed */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["BeginTOTPInputBody"];
                };
            };
            responses: {
                /** @description Created */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Begun"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/totp/confirm": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Turn the second factor on by a code of it; the recovery codes are shown once */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CodeInputBody"];
                };
            };
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RecoveryCodes"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/totp/disable": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Turn the second factor off, by the password and a code */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["EndTOTPInputBody"];
                };
            };
            responses: {
                /** @description No Content */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/auth/ways": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Which ways there are to sign in */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Ways"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/compare": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Compare runs: differences, how sure they are, and a verdict */
        get: {
            parameters: {
                query: {
                    /** @description Run ids of the first side, comma separated. */
                    a: string[] | null;
                    /** @description Run ids of the second side, comma separated. */
                    b: string[] | null;
                    /** @description The least difference that matters, in percent. */
                    tolerance_pct?: number;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Comparison"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/connections": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List connections */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ConnectionList"];
                    };
                };
            };
        };
        put?: never;
        /** Save a connection */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["ConnectionInput"];
                };
            };
            responses: {
                /** @description Created */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Connection"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/connections/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read a connection */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Connection"];
                    };
                };
            };
        };
        /** Change a connection */
        put: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["ConnectionChange"];
                };
            };
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Connection"];
                    };
                };
            };
        };
        post?: never;
        /** Delete a connection */
        delete: {
            parameters: {
                query?: {
                    /** @description The version that was read; 409 if it has changed since. Without it, only a change during the request is a conflict. */
                    version?: number;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description No Content */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/connections/{id}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Connect once with a saved connection */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ConnectionTest"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/connections/{id}/use": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read what uses a connection, and when it last worked */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ConnectionUse"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/connections/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Connect once, without saving */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["ConnectionTestBody"];
                };
            };
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ConnectionTest"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/docs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** This document, to read */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description A page */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/html": string;
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/info": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** About this server */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Info"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/matrices": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List matrices, newest first */
        get: {
            parameters: {
                query?: {
                    limit?: number;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["MatrixList"];
                    };
                };
            };
        };
        put?: never;
        /**
         * Create a run for each target of a template's matrix
         * @description Takes the body of POST /api/runs, whose scenario has a matrix. The runs are made at once and start one after another.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["RunCreateBody"];
                };
            };
            responses: {
                /** @description Created */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["MatrixState"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/matrices/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read a matrix with its runs */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["MatrixState"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        /** Delete a matrix and its runs */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description No Content */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/matrices/{id}/report": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The figures of every target, compared with the first: matrix.json */
        get: {
            parameters: {
                query?: {
                    /** @description The least difference that matters, in percent. */
                    tolerance_pct?: number;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["MatrixReport"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/matrices/{id}/start": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Start a prepared matrix */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: {
                content: {
                    "application/json": components["schemas"]["StartInputBody"];
                };
            };
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["MatrixState"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/matrices/{id}/stop": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Drain the run under way and cancel the others */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["MatrixState"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/openapi.json": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** This document */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OpenAPI 3.1 */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": Record<string, never>;
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/plugins": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List plugins
         * @description Those of the program first, then the uploaded ones, the highest version of each name first. The statements of a manifest are left out; reading one plugin has them.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["PluginList"];
                    };
                };
            };
        };
        put?: never;
        /**
         * Upload a plugin
         * @description The WebAssembly file as it is, or in the field `file` of a form; at most 8 MB, not compressed. It is examined in quarantine. One that is refused answers 422 with the code `plugin_refused` and a sentence that says why. One that passes is stored disabled; an admin enables it. The same bytes again answer 200. Another file of the same name and version is 409, unless the earlier one has never been enabled: then it takes its place.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/octet-stream": string;
                    "application/wasm": string;
                    "multipart/form-data": {
                        /** Format: binary */
                        file: string;
                    };
                };
            };
            responses: {
                /** @description The same bytes were there already. */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["PluginEntry"];
                    };
                };
                /** @description It is stored, disabled. */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["PluginEntry"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/plugins/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Inspect a plugin
         * @description Its manifest with the JSON Schema of its parameters and every statement it declares, its imports and exports, and who uses it. A bare name means the highest version that is enabled.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name, or name@version, or SHA-256 */
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["PluginEntry"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        /**
         * Delete an uploaded plugin
         * @description Only an admin may: a session, or a token of the scope admin. It is 409 while a template names it or a live run executes it; the sentence names them.
         */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name, or name@version, or SHA-256 */
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description No Content */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/plugins/{name}/disable": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Disable an uploaded plugin
         * @description Only an admin may: a session, or a token of the scope admin. No new run can use it; live ones go on.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name, or name@version, or SHA-256 */
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["PluginEntry"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/plugins/{name}/enable": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Enable an uploaded plugin
         * @description Only an admin may: a session, or a token of the scope admin. It is loaded first: what cannot be loaded stays disabled.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description name, or name@version, or SHA-256 */
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["PluginEntry"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/preflight": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Plan a run before its load
         * @description Takes the body of POST /api/runs; answers the frozen statements and the checks, each with its fix. With allow_writes, a handful of operations of each writing statement are executed and rolled back; on connections that are production only where confirm_production names them, and nowhere with trial: false.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["PreflightInputBody"];
                };
            };
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Preflight"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/query": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Query results with SQL
         * @description One statement that reads, over derived tables and roll-ups, executed by a role that can do nothing else. A token of the scope read may, too. Two queries of a user are executed at a time, and ten wait; more are 429.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["QueryQuestion"];
                };
            };
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["QueryAnswer"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/query/cancel": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Cancel a query of one's own
         * @description Whichever server executes it.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["QueryCancel"];
                };
            };
            responses: {
                /** @description No Content */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/query/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Query results into a file */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["QueryExport"];
                };
            };
            responses: {
                /** @description The file. */
                200: {
                    headers: {
                        "Cache-Control"?: string;
                        "Content-Disposition"?: string;
                        "Content-Type"?: string;
                        "X-Truncated"?: string;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/vnd.apache.parquet": string;
                        "application/x-ndjson": string;
                        "text/csv": string;
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/runs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List runs, newest first */
        get: {
            parameters: {
                query?: {
                    /** @description next_cursor of the page before, in the same order. */
                    cursor?: string;
                    /** @description Only the newest run of each template. */
                    latest_of_template?: boolean;
                    limit?: number;
                    order?: "asc" | "desc";
                    /** @description Part of the run's name, in any case. */
                    search?: string;
                    /** @description RFC 3339. */
                    since?: string;
                    /** @description Runs without the figure come last. */
                    sort?: "created" | "name" | "qps" | "p50_ms" | "p95_ms" | "p99_ms" | "error_rate" | "total_ops" | "length" | "ended" | "status" | "validity" | "created_by" | "connections";
                    /** @description Comma separated. */
                    status?: ("PREPARED" | "RUNNING" | "STOPPING" | "CANCELLING" | "COMPLETED" | "FAILED" | "CANCELLED")[] | null;
                    /** @description key:value; may be repeated, all must match. */
                    tag?: string[] | null;
                    template_id?: string;
                    /** @description Only runs whose thresholds were judged so. */
                    thresholds?: "passed" | "failed";
                    /** @description RFC 3339. */
                    until?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RunList"];
                    };
                };
            };
        };
        put?: never;
        /** Create a run from a template or a scenario */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["RunCreateBody"];
                };
            };
            responses: {
                /** @description Created */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Run"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/runs/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read a run with everything that belongs to it */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RunDetail"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        /** Delete a run and its executions */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description No Content */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/runs/{id}/artifacts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The parts of the run's record */
        get: {
            parameters: {
                query?: {
                    /** @description Only artifacts whose name comes after it. */
                    after?: string;
                    limit?: number;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ArtifactPage"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/runs/{id}/enrichment": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What the target's query history says of the run */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Enrichment"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/runs/{id}/enrichment/retry": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Ask the query history again, in the background */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Accepted */
                202: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Enrichment"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/runs/{id}/enrichment/stop": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Stop asking the query history; what was found is kept */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Enrichment"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/runs/{id}/events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The run's control events */
        get: {
            parameters: {
                query?: {
                    /** @description Only events whose sequence_id is greater. */
                    after?: number;
                    limit?: number;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["EventPage"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/runs/{id}/executions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Download every recorded execution
         * @description A zip of the Parquet parts; `part` names one of them; `format=csv` is a table of all.
         */
        get: {
            parameters: {
                query?: {
                    format?: "parquet" | "csv";
                    /** @description The name of one part. */
                    part?: string;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The executions, as an attachment. */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/vnd.apache.parquet": string;
                        "application/zip": string;
                        "text/csv": string;
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/runs/{id}/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What has become of a run in the results database and in a results connection */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RunExport"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/runs/{id}/logs": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The run's log */
        get: {
            parameters: {
                query?: {
                    /** @description Only lines whose seq is greater. */
                    after?: number;
                    /** @description This level and those above it. */
                    level?: "INFO" | "WARNING" | "ERROR" | "CRITICAL";
                    limit?: number;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["LogPage"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/runs/{id}/note": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What was written about a run */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RunNote"];
                    };
                };
            };
        };
        /** Write about a run */
        put: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["NoteInputBody"];
                };
            };
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RunNote"];
                    };
                };
            };
        };
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/runs/{id}/report": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The run's report, one HTML file
         * @description Verdict, figures and charts of a run that is over. The file loads nothing from a network and sends nothing.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The report. */
                200: {
                    headers: {
                        "Cache-Control"?: string;
                        "Content-Disposition"?: string;
                        "Content-Type"?: string;
                        [name: string]: unknown;
                    };
                    content: {
                        "text/html": string;
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/runs/{id}/seconds": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The measurement second by second, with its distributions */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["MeasuredSeconds"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/runs/{id}/shares": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Make a link by which anybody sees the run's report
         * @description The link shows the report and nothing else, until it expires or is ended.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["ShareInputBody"];
                };
            };
            responses: {
                /** @description Created */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["NewShare"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/runs/{id}/start": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Start a prepared run */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: {
                content: {
                    "application/json": components["schemas"]["StartInputBody"];
                };
            };
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Run"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/runs/{id}/stop": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Stop a run and drain it */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Run"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/runs/{id}/summary": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The exact figures of a finished run */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Summary"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/runs/{id}/tags": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Set the tags of a run that is not live */
        put: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["TagsInputBody"];
                };
            };
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["TaggedRun"];
                    };
                };
            };
        };
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/runs/{id}/timeseries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The run second by second */
        get: {
            parameters: {
                query?: {
                    /** @description Only points from this elapsed second on. */
                    from_seconds?: number;
                    /** @description How many points to answer about. Where there are more seconds, each point stands for several. */
                    max_points?: number;
                    /** @description Only points up to this elapsed second; 0 means all. */
                    until_seconds?: number;
                    /** @description One run worker, or * for all of them; without it the whole run. */
                    worker_id?: string;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Series"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/runs/{id}/warehouse": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The warehouse of the run, poll by poll */
        get: {
            parameters: {
                query?: {
                    /** @description Only polls and slots from this elapsed second on. */
                    from_seconds?: number;
                    /** @description How many polls, and how many slots, to answer about. Of more, each poll is the last of several, with the most queries that ran and waited in any of them; slots are left out evenly. */
                    max_points?: number;
                    /** @description Only polls and slots up to this elapsed second; 0 means all. */
                    until_seconds?: number;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["WarehouseSeries"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/statements/catalog": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** The tables and columns that a connection's user sees */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["CatalogInputBody"];
                };
            };
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RelationCatalog"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/statements/samples": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Values that generators make, without a database */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["SamplesInputBody"];
                };
            };
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SampleList"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/statements/try": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Draw values for a statement, explain it and, where it only reads, execute it once
         * @description Nothing is written: a statement that reads is executed in a transaction that cannot write, for 5 s at most; one that writes is only explained. The answer says what is wrong.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["TryInputBody"];
                };
            };
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["StatementTrial"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/stop-all": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Stop all runs and matrices, in an emergency
         * @description Tells the runs of this server to stop, also while the control store is away, and through the store those of other servers. They drain as with a stop of each. Asks nothing: whoever sends it means it.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["StopReport"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/templates": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List templates */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["TemplateList"];
                    };
                };
            };
        };
        put?: never;
        /** Save a template */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["TemplateInput"];
                };
            };
            responses: {
                /** @description Created */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Template"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/templates/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read a template */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Template"];
                    };
                };
            };
        };
        /** Save a new version of a template */
        put: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["TemplateUpdateBody"];
                };
            };
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Template"];
                    };
                };
            };
        };
        post?: never;
        /** Delete a template */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description No Content */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/templates/{id}/baseline": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The run that others of the template are held against */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Baseline"];
                    };
                };
                /** @description The template has no baseline. */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
            };
        };
        /** Make a run the baseline of its template */
        put: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["BaselineInputBody"];
                };
            };
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Baseline"];
                    };
                };
            };
        };
        post?: never;
        /** Remove the baseline of a template */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description No Content */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/templates/schema": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The JSON Schema of a template */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description JSON Schema 2020-12 */
                200: {
                    headers: {
                        "Content-Type"?: string;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/schema+json": Record<string, never>;
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/templates/validate": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Check a template without saving it
         * @description Answers 200 for a wrong template too: `valid` is false and `errors` names its fields.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["TemplateInput"];
                };
            };
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Validation"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/users": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the users */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["UserList"];
                    };
                };
            };
        };
        put?: never;
        /** Invite a user */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["NewUserInputBody"];
                };
            };
            responses: {
                /** @description Created */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Invitation"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/users/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Delete a user with its tokens; what the user made stays */
        delete: {
            parameters: {
                query?: {
                    /** @description The role that was seen; 409 when it is another by now. Without it, whoever it is is deleted. */
                    was?: "admin" | "operator" | "viewer";
                    /** @description Whether the user was seen to be locked out; 409 when it is otherwise by now. */
                    was_disabled?: "true" | "false";
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description No Content */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
            };
        };
        options?: never;
        head?: never;
        /** Give a user another role, lock it out, or let it in again */
        patch: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["ChangeUserInputBody"];
                };
            };
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["User"];
                    };
                };
            };
        };
        trace?: never;
    };
    "/api/users/{id}/invitation": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Make a link by which a user chooses a new password; the one before it ends */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Created */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Invitation"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/users/{id}/totp": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** Remove a user's second factor, when its app and recovery codes are lost */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description No Content */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/compare/parts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Compare the kinds and the statements of runs
         * @description Each kind and each statement on its own, as `/api/compare` compares runs as a whole.
         */
        get: {
            parameters: {
                query: {
                    /** @description Run ids of the first side, comma separated. */
                    a: string[] | null;
                    /** @description Run ids of the second side, comma separated. */
                    b: string[] | null;
                    /** @description The least difference that matters, in percent. */
                    tolerance_pct?: number;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["PartComparison"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/compare/report": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * A comparison of runs, one HTML file
         * @description Figures with intervals, kinds, statements and charts of 2 to 8 runs that are over. The file loads nothing from a network and sends nothing.
         */
        get: {
            parameters: {
                query: {
                    /** @description Run ids, comma separated; the others are compared with the first. */
                    runs: string[] | null;
                    /** @description The least difference that matters, in percent. */
                    tolerance_pct?: number;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The comparison. */
                200: {
                    headers: {
                        "Cache-Control"?: string;
                        "Content-Disposition"?: string;
                        "Content-Type"?: string;
                        [name: string]: unknown;
                    };
                    content: {
                        "text/html": string;
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/node-addresses": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The catalog of nodes
         * @description All servers of the control store dial these, beside those of their own flags.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["NodeAddressList"];
                    };
                };
            };
        };
        put?: never;
        /**
         * Add a node to the catalog
         * @description Only an admin may: a session, or a token of the scope admin. All servers dial it within a few seconds.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["NodeAddressInputBody"];
                };
            };
            responses: {
                /** @description Created */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["NodeAddress"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/node-addresses/{address}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Take a node out of the catalog
         * @description Only an admin may: a session, or a token of the scope admin. Its stream ends within a few seconds; what it carries stops by itself. Drain it first to lose none.
         */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    address: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description No Content */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/node-events": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What became of the nodes, newest first
         * @description Kept in the control store: all servers answer the same. The newest 10 000 are kept.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Older than this number. */
                    before?: number;
                    limit?: number;
                    /** @description Of this node only. */
                    node_id?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["NodeEventList"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/node-tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The tokens by which nodes can join now
         * @description Only an admin may: a session, or a token of the scope admin. Those that are over or used up are left out.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["NodeTokenList"];
                    };
                };
            };
        };
        put?: never;
        /**
         * Make a token by which a node joins; its secret is shown once
         * @description Only an admin may: a session, or a token of the scope admin. `loadstone worker --join` takes it. It is kept as a hash.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["NodeTokenInputBody"];
                };
            };
            responses: {
                /** @description Created */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["NewNodeToken"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/node-tokens/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * End a token by which nodes join
         * @description Only an admin may: a session, or a token of the scope admin. Nodes that have joined by it stay: those are revoked.
         */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description No Content */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/nodes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the nodes
         * @description Those that this server dials, its own among them, and those that an operator has removed.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["NodeList"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/nodes/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read a node */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Node"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/nodes/{id}/drain": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Drain a node
         * @description Only an admin may: a session, or a token of the scope admin. It ends what it has and takes nothing new, also after it or the server has restarted, until it is resumed.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Node"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/nodes/{id}/remove": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Remove a node
         * @description Only an admin may: a session, or a token of the scope admin. It is not let in any more, and its run workers count as lost when they must have stopped by themselves. Drain it first to lose none.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Node"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/nodes/{id}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Let a node take work again
         * @description Only an admin may: a session, or a token of the scope admin. Takes back that it was drained or removed.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Node"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/nodes/{id}/revoke": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Revoke the certificates of a node
         * @description Only an admin may: a session, or a token of the scope admin. Its stream is closed at once here, and within seconds on other servers. With a new token it can join again.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description No Content */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/notifications": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read notifications (admins) */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Notifications"];
                    };
                };
            };
        };
        /** Save notifications (admins) */
        put: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["SaveInputBody"];
                };
            };
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Notifications"];
                    };
                };
            };
        };
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/notifications/{id}/test": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Send a test of a notification (admins) */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Delivery"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/out": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read what became of what is sent elsewhere
         * @description What this server has sent of its own live runs with --remote-write, --otlp-metrics and --grafana-url. Other servers send what is of theirs.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Destinations"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/prices": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read the price list that costs are reckoned with */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["PriceList"];
                    };
                };
            };
        };
        /**
         * Save the price list for all servers (admins)
         * @description Costs that are shown or taken into tables from now on follow it; wrong fields are named with their lines.
         */
        put: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["GivenPrices"];
                };
            };
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["PriceList"];
                    };
                };
            };
        };
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/queries": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the saved queries */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SavedQueryList"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/queries/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Save a query */
        put: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description Percent-encoded. */
                    name: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["SavedQueryInput"];
                };
            };
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["SavedQuery"];
                    };
                };
            };
        };
        post?: never;
        /** Delete a saved query */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description Percent-encoded. */
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description No Content */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/query-catalog": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What can be queried */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["QueryCatalog"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/query-users": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List the logins that read results
         * @description Only an admin may: a session, or a token of the scope admin.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["QueryLoginList"];
                    };
                };
            };
        };
        put?: never;
        /**
         * Make a login that reads results
         * @description Only an admin may: a session, or a token of the scope admin. It connects to the results database and to nothing else, as long as the admin who made it is one. A name that is there is 409, or gets another password with new_password: it is let in again, and is the caller's then.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["QueryLoginInput"];
                };
            };
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["QueryLogin"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/query-users/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Remove a login that reads results
         * @description Only an admin may: a session, or a token of the scope admin. Its sessions end.
         */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description Percent-encoded. */
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description No Content */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/reports": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The reports of several runs, one ZIP archive
         * @description One HTML file for each run that has figures. The others are named in missing.txt, with the reason; where that is all of them, the first reason is the answer.
         */
        get: {
            parameters: {
                query: {
                    /** @description Run ids, comma separated. */
                    runs: string[] | null;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The archive. */
                200: {
                    headers: {
                        "Cache-Control"?: string;
                        "Content-Disposition"?: string;
                        "Content-Type"?: string;
                        [name: string]: unknown;
                    };
                    content: {
                        "application/zip": string;
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/retention": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read which runs are deleted by themselves (admins) */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Retention"];
                    };
                };
            };
        };
        /**
         * Decide which runs are deleted by themselves (admins)
         * @description Runs with a note, a tag that keeps runs, or a link that has not expired stay, and so do baselines of templates, runs that are replayed, and all that are not over. Every deletion is in the audit log.
         */
        put: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["GivenRules"];
                };
            };
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Retention"];
                    };
                };
            };
        };
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/retention/preview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** See what rules would delete now, and delete nothing (admins) */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["Rules"];
                };
            };
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Preview"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/run-views": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List one's own views of runs, and those that are shared */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RunViewList"];
                    };
                };
            };
        };
        put?: never;
        /**
         * Keep a view of runs under a name
         * @description It is the caller's own, a viewer's too. A user has one view of a name.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["RunViewInput"];
                };
            };
            responses: {
                /** @description Created */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RunView"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/run-views/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Change a view of runs
         * @description It is for its owner and admins.
         */
        put: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["RunViewChange"];
                };
            };
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RunView"];
                    };
                };
            };
        };
        post?: never;
        /** Delete a view of runs */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description No Content */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/run-views/{id}/shared": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Show a view of runs to everybody, or not
         * @description It is for its owner, where that is an operator, and for admins. Others see it and do not change it.
         */
        put: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["RunViewShared"];
                };
            };
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RunView"];
                    };
                };
            };
        };
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{id}/binds": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Parameters of failed and slow executions, without values
         * @description The first executions of each error of a statement and the slowest of each statement, with the types and lengths of their parameters. They are there when the record has come to the server.
         */
        get: {
            parameters: {
                query?: {
                    connection?: number;
                    /** @description Those that failed like that. */
                    error_class?: string;
                    error_code?: string;
                    /** @description Whether of statements inside transactions; left out, both. */
                    inside?: "yes" | "no";
                    seq?: number;
                    /** @description Executions of one statement. */
                    statement?: string;
                    /** @description Left out, both. */
                    why?: "failed" | "slow";
                    /** @description Of one run worker. With connection and seq it is one execution. */
                    worker?: string;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["KeptBinds"];
                    };
                };
            };
        };
        put?: never;
        /**
         * Parameters of failed and slow executions, with values
         * @description For operators who may use the run's template and connection, where the template has values kept (`workload.binds: plain`). Each request is in the audit log.
         */
        post: {
            parameters: {
                query?: {
                    connection?: number;
                    /** @description Those that failed like that. */
                    error_class?: string;
                    error_code?: string;
                    /** @description Whether of statements inside transactions; left out, both. */
                    inside?: "yes" | "no";
                    seq?: number;
                    /** @description Executions of one statement. */
                    statement?: string;
                    /** @description Left out, both. */
                    why?: "failed" | "slow";
                    /** @description Of one run worker. With connection and seq it is one execution. */
                    worker?: string;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["KeptBinds"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{id}/executions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Look for executions of a run, page by page
         * @description Reads the recorded parts, those of a run that goes on as far as they have come to the server. An execution is found at the time at which it ended, as in charts.
         */
        get: {
            parameters: {
                query?: {
                    /** @description next_cursor of the page before, with the same filters and order. */
                    cursor?: string;
                    /** @description Comma separated. */
                    error_class?: string[] | null;
                    /** @description Comma separated. */
                    error_code?: string[] | null;
                    /** @description An exact message, as it was recorded; may be repeated. */
                    error_message?: string[] | null;
                    /** @description RFC 3339. Executions that ended then or later. */
                    from?: string;
                    /** @description Statements inside transactions, too. */
                    inside?: boolean;
                    /** @description Comma separated; one of them is enough, as everywhere below. */
                    kind?: string[] | null;
                    limit?: number;
                    order?: "asc" | "desc";
                    outcome?: "succeeded" | "failed" | "rolled_back";
                    /** @description Latencies above it. */
                    over_ms?: number;
                    phase?: "WARMUP" | "MEASUREMENT";
                    sort?: "time" | "latency";
                    /** @description Ids of statements, comma separated. */
                    statement?: string[] | null;
                    /** @description RFC 3339. Executions that ended before. */
                    until?: string;
                    /** @description Latencies up to it; 0 is no bound. */
                    upto_ms?: number;
                    /** @description Ids of run workers, comma separated. */
                    worker?: string[] | null;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ExecutionPage"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{id}/failures": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * What failed in a run, by error and statement
         * @description The warm-up and statements inside transactions included. Reads the recorded parts, those of a run that goes on as far as they have come to the server.
         */
        get: {
            parameters: {
                query?: {
                    /** @description Without the values in the texts of statements, too; messages have none. */
                    mask?: boolean;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Failures"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{id}/kinds": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Rate, errors and latencies of each kind over time
         * @description Of a run that is over, from its series: some seconds after its end.
         */
        get: {
            parameters: {
                query?: {
                    /** @description At most so many; a long run's are coarser. */
                    points?: number;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["KindCurves"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{id}/load": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Change the load of a run that goes on
         * @description The rate of a run of the mode QPS, or the connections of one of the mode CONCURRENCY, without stages. Answers the event LOAD_CHANGED; the verdict of the run says so, and comparisons with it.
         */
        put: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["LoadInput"];
                };
            };
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Event"];
                    };
                };
            };
        };
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{id}/marks": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What is marked in a run */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["MarkList"];
                    };
                };
            };
        };
        put?: never;
        /**
         * Mark a moment of a run
         * @description It is drawn in every chart of the run. A run that is over takes marks too.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["MarkInput"];
                };
            };
            responses: {
                /** @description Created */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Mark"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{id}/marks/{mark}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /** Change a mark of a run */
        put: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                    mark: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["MarkChange"];
                };
            };
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Mark"];
                    };
                };
            };
        };
        post?: never;
        /** Delete a mark of a run */
        delete: {
            parameters: {
                query?: {
                    /** @description Its time, RFC 3339, to the millisecond. */
                    was_at?: string;
                    /** @description The text of the mark that was read, with was_at; 409 if it has changed since. Without both, the mark is deleted in any case. */
                    was_text?: string;
                };
                header?: never;
                path: {
                    id: string;
                    mark: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description No Content */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/runs/{id}/why": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Why operations of a run were slow: what the server did, and findings
         * @description Of a run that goes on it is what this server has seen so far; its findings may change. observed is false where nothing was seen, and reason says why.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ServerView"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/scaling": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Read what there is to do
         * @description For KEDA's metrics-api scaler (valueLocation wanted_nodes for nodes that carry load, pending_refresh_count for workers that refresh tables) and others. All servers on one control store answer the same, as far as they see the same nodes.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Needs"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/schedule-times": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the next times of a cron expression */
        get: {
            parameters: {
                query: {
                    count?: number;
                    cron: string;
                    time_zone?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ScheduleTimes"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/schedules": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List schedules by name */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ScheduleList"];
                    };
                };
            };
        };
        put?: never;
        /**
         * Start runs of a template at the times of a cron expression
         * @description Runs start in the caller's name, with the rights that the caller has then. At most one scheduled run of a template goes on at a time: a start that is due meanwhile is skipped, and listed as such. Connections that are production are confirmed once, here.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["ScheduleInput"];
                };
            };
            responses: {
                /** @description Created */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Schedule"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/schedules/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read a schedule */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Schedule"];
                    };
                };
            };
        };
        /**
         * Change, pause or resume a schedule
         * @description It is for the owner and admins. Whoever saves a schedule owns it; a suspended one is resumed. A change that only pauses it needs no right to its connections, and leaves it to its owner. When somebody else changes what the template does, the schedule is suspended.
         */
        put: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["ScheduleChange"];
                };
            };
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Schedule"];
                    };
                };
            };
        };
        post?: never;
        /** Delete a schedule; its runs stay */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description No Content */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/schedules/{id}/starts": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List what became of the starts of a schedule, the newest first */
        get: {
            parameters: {
                query?: {
                    limit?: number;
                };
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ScheduledStartList"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/shares": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the links to reports */
        get: {
            parameters: {
                query?: {
                    /** @description Those of one run. */
                    run_id?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["ShareList"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/shares/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /** End a link to a report */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description No Content */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/streams": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * The catalog of streams, with its queries
         * @description All of it as it was at one moment.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["StreamCatalog"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/streams/statements": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Carry out statements of the catalog of streams
         * @description One group: all of them, or none and the error, whose field is `sql` with line and column. A query is accepted once it has been planned; its state says what becomes of it.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["StatementsInput"];
                };
            };
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["StatementResults"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/streams/watch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Watch a table of the catalog of streams
         * @description Server-sent events: SNAPSHOT with all rows, then CREATE, UPDATE and DROP with one each, in `rows`. Beside these an event has its `type` (SNAPSHOT, RESUMED or EVENT), and its `data`: all rows, or the one; of EVENT also the `op` and the `key` of the entity. The id of an event is the position behind it; with it, as Last-Event-ID or `after`, a watch goes on where it was broken off: RESUMED and what is different since, or SNAPSHOT where that is not known any more. A client that reads slowly gets what has changed meanwhile as one change.
         */
        get: {
            parameters: {
                query: {
                    /** @description The position behind which the watch goes on. */
                    after?: string;
                    /** @description WATCH SELECT … FROM workers, queries, query_fragments, logical_sources, physical_sources or sinks. */
                    sql: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The events, until the client ends. */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/event-stream": string;
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/table-preview": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Show what a definition would give: plan, columns, first rows
         * @description Nothing is made. The rows are left out when they take longer than two seconds.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["TablePreviewInput"];
                };
            };
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["TablePreview"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/tables": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** List the derived tables */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["DerivedTableList"];
                    };
                };
            };
        };
        put?: never;
        /**
         * Make a derived table
         * @description Its definition is executed by a role that can read results and nothing else.
         */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["DerivedTableInput"];
                };
            };
            responses: {
                /** @description Created */
                201: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["DerivedTable"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/tables/{name}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Read a derived table */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description Percent-encoded. */
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["DerivedTableDetail"];
                    };
                };
            };
        };
        /**
         * Change a derived table
         * @description It is refreshed in whole then; one that has failed is active again, and so is one that was suspended since its owner may have it refreshed no longer: it is the caller's then.
         */
        put: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description Percent-encoded. */
                    name: string;
                };
                cookie?: never;
            };
            requestBody: {
                content: {
                    "application/json": components["schemas"]["DerivedTableChange"];
                };
            };
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["DerivedTable"];
                    };
                };
            };
        };
        post?: never;
        /** Drop a derived table */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description Percent-encoded. */
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description No Content */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/tables/{name}/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** What became of the refreshes of a table */
        get: {
            parameters: {
                query?: {
                    limit?: number;
                };
                header?: never;
                path: {
                    /** @description Percent-encoded. */
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["RefreshHistory"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/tables/{name}/refresh": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Refresh a table now */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description Percent-encoded. */
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["DerivedTable"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/tables/{name}/resume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Let a table be refreshed again */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description Percent-encoded. */
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["DerivedTable"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/tables/{name}/suspend": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /** Suspend a table */
        post: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description Percent-encoded. */
                    name: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["DerivedTable"];
                    };
                };
            };
        };
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * List everybody's API tokens, or sessions
         * @description Only an admin may: a session, or a token of the scope admin. Secrets are nowhere; expired ones are left out.
         */
        get: {
            parameters: {
                query?: {
                    /** @description API tokens, or the sessions of browsers. */
                    kind?: "api" | "session";
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description OK */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["OwnedTokens"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/tokens/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Revoke a token, or end a session, of anybody
         * @description Only an admin may: a session, or a token of the scope admin. It is refused at once on the server that was asked, and within 20 s on the others; sockets that it has opened end.
         */
        delete: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description No Content */
                204: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content?: never;
                };
            };
        };
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/healthz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Whether the process lives */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It does. */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Healthy"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/metrics": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Metrics for Prometheus */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The text format of Prometheus. */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/plain": string;
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/readyz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** Whether a run can be created now: control store, results and nodes */
        get: {
            parameters: {
                query?: {
                    /** @description Checks to leave out, with a comma between them: nodes, results. */
                    exclude?: string;
                };
                header?: never;
                path?: never;
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description It can. */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Ready"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/shared/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /** The report that a link leads to */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    /** @description The secret of the link. */
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description The report. */
                200: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "text/html": string;
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/ws/runs/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Watch a run (WebSocket)
         * @description A WebSocket. It sends one message at once and one a second, each a full snapshot, and closes with 1000 after the last. What is sent to it is ignored.
         */
        get: {
            parameters: {
                query?: never;
                header?: never;
                path: {
                    id: string;
                };
                cookie?: never;
            };
            requestBody?: never;
            responses: {
                /** @description Switching protocols; messages of this form follow. */
                101: {
                    headers: {
                        [name: string]: unknown;
                    };
                    content: {
                        "application/json": components["schemas"]["Message"];
                    };
                };
            };
        };
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        Access: {
            /** @description The owner's name. */
            owner?: string;
            owner_id?: string;
            /** @description Whether only its owner, admins and the users named may use it. */
            restricted: boolean;
            users?: components["schemas"]["AccessUser"][] | null;
        };
        AccessInput: {
            /** @description Gives it to another user; left out, it stays whose it is. */
            owner?: string;
            /** @description Whether only its owner, admins and the users named may use it. */
            restricted: boolean;
            /** @description Names of further users who may use it, besides its owner and admins. */
            users?: string[] | null;
        };
        AccessUser: {
            name: string;
            user_id: string;
        };
        Accounting: {
            balanced: boolean;
            /** Format: int64 */
            dropped: number;
            dropped_by_reason: components["schemas"]["Drops"];
            /** Format: int64 */
            failed: number;
            problems?: string[] | null;
            /** Format: int64 */
            recorded: number;
            /** Format: int64 */
            scheduled: number;
            /** Format: int64 */
            started: number;
            /** Format: int64 */
            statements: number;
            /** Format: int64 */
            succeeded: number;
            /** Format: int64 */
            warmup: number;
            /** Format: int64 */
            warmup_dropped: number;
            /** Format: int64 */
            warmup_scheduled: number;
        };
        AggregateEnrichment: {
            /** Format: date-time */
            available_at: string | null;
            /** Format: int64 */
            calls: number;
            /** Format: int64 */
            expected: number;
            /** Format: date-time */
            from: string | null;
            /** Format: date-time */
            next_poll_at: string | null;
            /** Format: int64 */
            polls: number;
            reason?: string;
            rows: components["schemas"]["AggregateStatements"][] | null;
            /** @enum {string} */
            status: "PENDING" | "RUNNING" | "COMPLETED" | "PARTIAL" | "SKIPPED" | "FAILED";
            /** Format: int64 */
            throttled: number;
            /** Format: date-time */
            to: string | null;
        };
        AggregateStatements: {
            /** Format: double */
            avg_ms: number;
            /** Format: int64 */
            calls: number;
            client_ms: components["schemas"]["StatementLatencyMs"] | null;
            /** Format: double */
            compilation_ms: number;
            /** Format: double */
            execution_ms: number;
            /** @enum {string|null} */
            kind: "POINT_LOOKUP" | "RANGE_SCAN" | "INSERT" | "UPDATE" | "DELETE" | "GENERIC_SQL" | "TRANSACTION" | null;
            /** Format: double */
            max_ms: number;
            /** Format: double */
            p50_ms: number;
            /** Format: double */
            p90_ms: number;
            /** Format: double */
            p99_ms: number;
            /** Format: double */
            p999_ms: number;
            query_type: string;
            /** Format: double */
            queued_ms: number;
            statement_id: string;
            /** Format: int64 */
            throttled: number;
        };
        Artifact: {
            artifact_checksum: string;
            artifact_id: string;
            /** Format: int64 */
            artifact_size_bytes: number;
            /** Format: date-time */
            created_at: string | null;
            kind: string;
            /** Format: date-time */
            max_ts: string | null;
            /** Format: date-time */
            min_ts: string | null;
            name: string;
            /** Format: int64 */
            parquet_schema_version: number;
            /** Format: int64 */
            row_count: number;
            run_id: string;
            test_id: string;
            worker_id: string;
        };
        ArtifactPage: {
            artifacts: components["schemas"]["Artifact"][] | null;
            /** @description Give it as after to read on. */
            last_name: string;
            /**
             * Format: int64
             * @description How many artifacts the run has.
             */
            total: number;
        };
        AuditEntry: {
            /** @description run.start, connection.delete, auth.signin … */
            action: string;
            /** @description Where the request came from, as far as proxies are trusted. */
            address?: string;
            /** Format: date-time */
            at: string | null;
            /**
             * Format: int64
             * @description Rises with each line.
             */
            audit_id: number;
            detail?: string;
            /** @description The id or the name of what it was done to. */
            object: string;
            /** @enum {string} */
            outcome: "done" | "refused" | "failed";
            /** @description The API token or the session. */
            token_id?: string;
            token_name?: string;
            user_id?: string;
            /** @description The user's name at the time; empty for strangers and for the server itself. */
            user_name?: string;
        };
        AuditPage: {
            entries: components["schemas"]["AuditEntry"][];
            /**
             * Format: int64
             * @description Give it as before to read on; 0 when there is no more.
             */
            next_before: number;
        };
        AuditRetention: {
            /**
             * Format: int64
             * @description 0 keeps lines for ever; 30 is the least otherwise.
             */
            keep_days: number;
        };
        AuditRetentionChange: {
            /**
             * Format: int64
             * @description 0 keeps lines for ever; 30 is the least otherwise.
             */
            keep_days: number;
            /**
             * Format: int64
             * @description keep_days as it was read; 409 when it is another by now. Without it, whatever is there is replaced.
             */
            was?: number;
        };
        Baseline: {
            run_id: string;
            /** Format: date-time */
            set_at: string | null;
            set_by: string;
            template_id: string;
        };
        BaselineInputBody: {
            /** @description A completed run of the template. */
            run_id: string;
        };
        Beginning: {
            /**
             * Format: date-time
             * @description By the server's clock.
             */
            began_at: string | null;
            /**
             * Format: double
             * @description How far its times, as times of the server, may be wrong, either way; null while that is not known.
             */
            clock_error_ms: number | null;
            node_id: string;
            /**
             * Format: double
             * @description How long after the instant that START named; 0 where START names none.
             */
            start_late_ms: number;
        };
        BeginTOTPInputBody: {
            /** @description Yours: a browser that was left open gives nobody a second factor of their own. */
            password: string;
        };
        Begun: {
            /** @description The picture of the URL, as SVG. */
            qr_svg: string;
            /** @description In base32, for apps that cannot read the picture. */
            secret: string;
            /** @description otpauth://totp/…, what the picture says. */
            url: string;
        };
        Bind: {
            column?: string;
            name: string;
            type: string;
        };
        Blocker: {
            application?: string;
            blocked_by?: string;
            ours?: boolean;
            session: string;
            /** @enum {string} */
            state: "active" | "idle" | "in_transaction" | "service";
            statement?: string;
            /** Format: double */
            transaction_seconds: number;
            user?: string;
            /** Format: int64 */
            waiting: number;
        };
        Calibration: {
            /** Format: date-time */
            at: string | null;
            automatic: boolean;
            /** Format: int64 */
            connections: number;
            /** Format: double */
            cost_ns_per_operation: number;
            /** Format: int64 */
            cpus: number;
            engines?: components["schemas"]["IOCost"][] | null;
            io_engine: string;
            loadstone_version: string;
            /** Format: double */
            machine_busy_pct: number;
            machine_fingerprint: string;
            /** Format: double */
            max_qps: number;
            percentiles: components["schemas"]["PercentileError"][] | null;
            /** Format: double */
            rate_error_pct: number;
            /** Format: double */
            schedule_lag_max_ms: number;
            /** Format: double */
            schedule_lag_p50_ms: number;
            /** Format: double */
            schedule_lag_p99_ms: number;
            /** Format: double */
            schedule_rate: number;
            /** Format: double */
            threads_waited_pct: number;
        };
        CatalogColumn: {
            generated?: string;
            key?: boolean;
            name: string;
            type: string;
            values?: string[] | null;
        };
        CatalogInputBody: {
            /** @description The name of a saved connection. */
            connection: string;
        };
        CatalogRelation: {
            columns: components["schemas"]["CatalogColumn"][] | null;
            name: string;
            schema: string;
        };
        ChangeUserInputBody: {
            /** @description true locks the user out: sessions and tokens are refused until it is false again. */
            disabled?: boolean;
            /** @enum {string} */
            role?: "admin" | "operator" | "viewer";
            /**
             * @description The role that was seen; 409 when it is another by now. Without it, whatever it is is replaced.
             * @enum {string}
             */
            was?: "admin" | "operator" | "viewer";
            /** @description Whether the user was seen to be locked out; 409 when it is otherwise by now. */
            was_disabled?: boolean;
        };
        CheckResult: {
            field?: string;
            fix?: string;
            message: string;
            name: string;
            outcome: string;
            target?: string;
        };
        CodeInputBody: {
            /** @description The six digits that the app shows. */
            code: string;
        };
        Column: {
            db_type: string;
            fresh?: boolean;
            generated: boolean;
            has_default: boolean;
            /** Format: int64 */
            max_length?: number;
            name: string;
            nullable: boolean;
            /** Format: int64 */
            top?: number;
            type: string;
            unique?: boolean;
        };
        ComparedPart: {
            /** Format: int64 */
            a_operations: number;
            /** Format: int64 */
            b_operations: number;
            in_transaction: boolean;
            /** @enum {string} */
            kind: "POINT_LOOKUP" | "RANGE_SCAN" | "INSERT" | "UPDATE" | "DELETE" | "GENERIC_SQL" | "TRANSACTION";
            metrics: components["schemas"]["Metric"][];
            statement_id: string;
            /** @enum {string} */
            verdict: "better" | "worse" | "same" | "unclear";
        };
        Comparison: {
            metrics: components["schemas"]["Metric"][] | null;
            notes: string[] | null;
            same_run: boolean;
            simulated: boolean;
            /** Format: double */
            slower_probability: number | null;
            stand_in: components["schemas"]["StandIn"];
            unlike: components["schemas"]["Unlike"][] | null;
            /** @enum {string} */
            verdict: "better" | "worse" | "same" | "unclear";
        };
        Connection: {
            access: components["schemas"]["Access"];
            builtin: boolean;
            connection_id: string;
            /** Format: date-time */
            created_at: string | null;
            description?: string;
            driver: string;
            dsn: string;
            name: string;
            production: boolean;
            /** Format: date-time */
            updated_at: string | null;
            /** Format: int64 */
            version: number;
        };
        ConnectionChange: {
            access?: components["schemas"]["AccessInput"];
            description?: string;
            /** @enum {string} */
            driver: "postgres" | "snowflake";
            /** @description postgres://user:password@host:5432/database. In an update, a password of *** keeps the saved one. */
            dsn: string;
            /** @description Save nothing, and keep the version, when the connection is all of this already, its password too. */
            keep_equal?: boolean;
            /** @description Unique; templates refer to it. */
            name: string;
            /** @description Whether each run against it has to be confirmed by typing its name. */
            production?: boolean;
            /**
             * Format: int64
             * @description The version that was edited; 409 when it has been changed since. Without it, what is not named here stays as somebody else may have made it meanwhile.
             */
            version?: number;
        };
        ConnectionFigures: {
            /** Format: int64 */
            lost: number;
            /** Format: int64 */
            most_missing: number;
            /** Format: int64 */
            refused: number;
            /** Format: int64 */
            reopened: number;
        };
        ConnectionInput: {
            access?: components["schemas"]["AccessInput"];
            description?: string;
            /** @enum {string} */
            driver: "postgres" | "snowflake";
            /** @description postgres://user:password@host:5432/database. In an update, a password of *** keeps the saved one. */
            dsn: string;
            /** @description Unique; templates refer to it. */
            name: string;
            /** @description Whether each run against it has to be confirmed by typing its name. */
            production?: boolean;
        };
        ConnectionList: {
            connections: components["schemas"]["Connection"][] | null;
        };
        ConnectionTest: {
            ok: boolean;
            /** Format: double */
            round_trip_ms: number;
            server: components["schemas"]["ServerInfo"];
        };
        ConnectionTestBody: {
            /** @description The saved connection whose password stands behind *** in dsn. */
            connection_id?: string;
            /** @enum {string} */
            driver: "postgres" | "snowflake";
            dsn: string;
        };
        ConnectionUse: {
            /** @description The newest of them; null without one. */
            last_run: components["schemas"]["UsedByRun"] | null;
            /** @description Whether servers take the results of all users to it (--results-connection): only admins say where it leads then. */
            results: boolean;
            /**
             * Format: int64
             * @description How many runs have named it, those that go on included.
             */
            runs: number;
            /** @description The sinks of continuous queries that write to it, by name. */
            sinks: string[];
            /** @description The templates that name it, by name. */
            templates: components["schemas"]["UsedByTemplate"][];
            /** @description When the database last answered; null when that is not known. Tests count as long as the audit log has them. */
            worked: components["schemas"]["Worked"] | null;
        };
        Constraint: {
            columns: string[] | null;
            equal?: string[] | null;
            kind: string;
            /** Format: int64 */
            left?: number;
            name?: string;
            nulls_equal?: boolean;
            /** Format: int64 */
            parents?: number;
            partial?: boolean;
            references?: string;
            self?: boolean;
        };
        Cost: {
            /** Format: double */
            caused_credits: number;
            /** Format: double */
            caused_price: number;
            /** Format: double */
            caused_seconds: number;
            /** Format: double */
            clusters: number;
            /** Format: double */
            credit_price: number;
            /** Format: double */
            credits: number;
            /** Format: double */
            credits_per_hour: number;
            currency: string;
            notes: string[] | null;
            /** Format: double */
            price: number;
            price_list: string;
            /** Format: double */
            price_per_million_operations: number | null;
            /** Format: double */
            run_credits: number;
            /** Format: double */
            run_price: number;
            warehouse: string;
            warehouse_generation: string;
            warehouse_size: string;
            warehouse_type: string;
        };
        CustomMetrics: {
            app_ops_breakdown: {
                [key: string]: number;
            } | null;
            resources: components["schemas"]["Resources"];
            sf_bench: {
                [key: string]: unknown;
            } | null;
        };
        Delivery: {
            arrived: boolean;
            /** Format: date-time */
            at: string | null;
            /**
             * Format: int64
             * @description The first is 1.
             */
            attempt: number;
            delivery_id: string;
            error?: string;
            event: string;
            hook_id: string;
            hook_name: string;
            run_id?: string;
        };
        DerivedTable: {
            /**
             * Format: date-time
             * @description When its latest refresh began; null of an SQL table that was never refreshed: there is no table yet, and no lag; and of an INGEST table, which is taken in run by run.
             */
            as_of: string | null;
            /**
             * Format: date-time
             * @description The first change of what it reads that it does not have; null when it has everything, or was never refreshed and nothing has changed since it was defined: see as_of.
             */
            behind_since: string | null;
            /** @description It comes with Loadstone, and is neither changed nor dropped. */
            bundled: boolean;
            /** Format: date-time */
            changed_at: string | null;
            /** Format: date-time */
            created_at: string | null;
            created_by: string;
            /** @description The SELECT of an SQL table. */
            definition: string;
            description: string;
            error: string;
            /** @description Runs and parts whose last refresh failed, the newest first, 20 at most. */
            failing: components["schemas"]["Failing"][];
            /**
             * Format: int64
             * @description How often its refresh has failed since it succeeded; of an INGEST table how many runs have failed too often and are left alone until somebody resumes it.
             */
            failures: number;
            /** @enum {string} */
            kind: "SQL" | "INGEST";
            /** Format: double */
            last_refresh_seconds: number;
            name: string;
            /** Format: date-time */
            next_refresh_due: string | null;
            /** @description The owner's name. */
            owner?: string;
            /** @description The user whose work its refreshes are: who made it, changed its definition last, or resumed it last. It is suspended when that user is locked out, deleted or a viewer. Empty of bundled tables, of those made before there were owners, and for viewers. */
            owner_id?: string;
            /**
             * @description RUN: each row belongs to the run of its run_id; DAY: to the runs that began on its day (UTC).
             * @enum {string}
             */
            partition_by: "" | "RUN" | "DAY";
            /**
             * Format: int64
             * @description How many parts a refresh divides its runs or days into, each for any worker; 0 decides by their number.
             */
            partitions: number;
            /**
             * Format: int64
             * @description The highest is refreshed first.
             */
            priority: number;
            /** @enum {string} */
            refresh_mode: "FULL" | "INCREMENTAL" | "AUTO";
            /** @description The derived tables that it reads. */
            sources: string[];
            /** @enum {string} */
            status: "ACTIVE" | "SUSPENDED" | "FAILED";
            /** @description Why it is suspended after its owner lost the right to refresh it; viewers see no more than that. A user who resumes or changes it becomes its owner. */
            suspended_reason?: string;
            /**
             * Format: double
             * @description How far it may be behind what it reads.
             */
            target_lag_seconds: number;
            /** Format: date-time */
            updated_at: string | null;
            /** @description The user who changed its definition last. */
            updated_by: string;
            /**
             * Format: int64
             * @description Rises with each change of the definition.
             */
            version: number;
        };
        DerivedTableChange: {
            definition: string;
            description?: string;
            /** @enum {string} */
            partition_by?: "" | "RUN" | "DAY";
            /** Format: int64 */
            partitions?: number;
            /** Format: int64 */
            priority?: number;
            /**
             * @default AUTO
             * @enum {string}
             */
            refresh_mode: "FULL" | "INCREMENTAL" | "AUTO";
            /**
             * Format: double
             * @default 60
             */
            target_lag_seconds: number;
            /**
             * Format: int64
             * @description The version that was edited; 409 if somebody saved another since; the answer names the user and the time.
             */
            version: number;
        };
        DerivedTableDetail: {
            /** Format: date-time */
            at: string | null;
            claims: components["schemas"]["RefreshClaim"][];
            pending: components["schemas"]["PendingRefresh"][];
            /** @description The derived tables that read it. */
            read_by: string[];
            table: components["schemas"]["DerivedTable"];
        };
        DerivedTableInput: {
            /** @description One SELECT over derived tables and roll-ups. */
            definition: string;
            description?: string;
            name: string;
            /**
             * @description RUN: each row depends on the roll-ups of the run of its run_id alone, so that rows of other runs need not be computed again. DAY: each row depends on the runs alone that began on its day, a column of the type date, in UTC.
             * @enum {string}
             */
            partition_by?: "" | "RUN" | "DAY";
            /**
             * Format: int64
             * @description How many parts a refresh divides its runs or days into, each for any worker; 0 decides by their number. More than 1 needs partition_by.
             */
            partitions?: number;
            /** Format: int64 */
            priority?: number;
            /**
             * @default AUTO
             * @enum {string}
             */
            refresh_mode: "FULL" | "INCREMENTAL" | "AUTO";
            /**
             * Format: double
             * @default 60
             */
            target_lag_seconds: number;
        };
        DerivedTableList: {
            /** Format: date-time */
            at: string | null;
            claims: components["schemas"]["RefreshClaim"][];
            /** @description Which tables no worker refreshes, and what is to be done; empty when all have one. */
            nobody: string;
            pending: components["schemas"]["PendingRefresh"][];
            tables: components["schemas"]["DerivedTable"][];
            /** @description The refresh workers that reported in the last 30 seconds. */
            workers: components["schemas"]["RefreshWorker"][];
        };
        Destination: {
            /** @description Where it is, without secrets. */
            address: string;
            /** @description Whether the last delivery did not arrive. */
            failing: boolean;
            /** @description What the last delivery came to that did not succeed. */
            last_error?: string;
            /**
             * Format: date-time
             * @description When that was.
             */
            last_error_at?: string;
            /** @description Those that are lost, by why: queue_full, refused, given_up, shutdown. */
            lost_counts: {
                [key: string]: number;
            } | null;
            /** @description remote_write (the next receivers have numbers: remote_write_2), otlp or grafana, as in metrics. */
            name: string;
            /**
             * Format: int64
             * @description Deliveries that did not arrive and were made again.
             */
            retry_count: number;
            /**
             * Format: int64
             * @description Samples or annotations that it has taken.
             */
            sent_count: number;
            /**
             * Format: int64
             * @description About how much memory they take.
             */
            waiting_bytes: number;
            /**
             * Format: int64
             * @description Those that wait, and are on their way.
             */
            waiting_count: number;
        };
        Destinations: {
            /** @description In the order of their flags; none where nothing is sent. */
            destinations: components["schemas"]["Destination"][] | null;
        };
        Dispersion: {
            /** Format: double */
            cv_pct: number | null;
            /** Format: double */
            max: number;
            /** Format: double */
            median: number;
            /** Format: double */
            min: number;
        };
        Drops: {
            /** Format: int64 */
            max_in_flight: number;
            /** Format: int64 */
            not_dispatched: number;
            /** Format: int64 */
            stopped: number;
        };
        EndTOTPInputBody: {
            /** @description The six digits that the app shows, or a recovery code. */
            code: string;
            password: string;
        };
        Enrichment: {
            aggregate: components["schemas"]["AggregateEnrichment"] | null;
            by_kind: {
                [key: string]: components["schemas"]["KindEnrichment"];
            } | null;
            /** Format: date-time */
            ended_at: string | null;
            /** Format: int64 */
            executions: number;
            /** Format: int64 */
            matched: number;
            /** Format: date-time */
            next_poll_at: string | null;
            notes?: string[] | null;
            /** Format: int64 */
            pages: number;
            /** Format: int64 */
            polls: number;
            /** Format: double */
            ratio: number | null;
            reason?: string;
            retryable: boolean;
            /** Format: date-time */
            started_at: string | null;
            /** @enum {string} */
            status: "PENDING" | "RUNNING" | "COMPLETED" | "PARTIAL" | "SKIPPED" | "FAILED";
            total: components["schemas"]["ServerFigures"] | null;
            /** Format: int64 */
            without_id: number;
        };
        Environment: {
            arch: string;
            calibration: components["schemas"]["Calibration"] | null;
            cpu_model: string;
            /** Format: int64 */
            cpus: number;
            driver: string;
            emulated: boolean;
            go_version: string;
            hostname: string;
            io_engine: string;
            io_engine_reason: string;
            loadstone_version: string;
            /** Format: int64 */
            memory_bytes: number;
            /** Format: int64 */
            nodes: number;
            os: string;
            server_version: string;
            simulated: boolean;
            target_is_local: boolean;
            /** Format: int64 */
            target_max_connections: number;
        };
        ErrorFigures: {
            by_class: {
                [key: string]: number;
            } | null;
            /** Format: int64 */
            count: number;
            /** Format: double */
            rate: number | null;
            top: components["schemas"]["ErrorGroup"][] | null;
        };
        ErrorGroup: {
            /** Format: int64 */
            count: number;
            error_class: string;
            error_code: string;
            error_message: string;
        };
        Event: {
            /** Format: date-time */
            created_at: string | null;
            event_data: components["schemas"]["EventData"];
            event_id: string;
            /** @enum {string} */
            event_type: "START" | "STOP" | "SET_PHASE" | "SET_WORKER_TARGET" | "LOAD_CHANGED";
            run_id: string;
            /** Format: int64 */
            sequence_id: number;
        };
        EventData: {
            detail?: string;
            /** Format: double */
            drain_timeout_seconds?: number;
            /** Format: date-time */
            effective_at?: string;
            /** Format: int64 */
            expected_workers?: number;
            initiated_by?: string;
            /** Format: int64 */
            old_connections?: number;
            /** Format: double */
            old_qps?: number;
            /** @enum {string} */
            phase?: "PREPARING" | "WARMUP" | "MEASUREMENT" | "COOLDOWN" | "PROCESSING" | "";
            /** Format: double */
            ramp_seconds?: number;
            reason?: string;
            /** @enum {string} */
            scope: "RUN" | "WORKER_GROUP" | "WORKER";
            /** Format: double */
            settle_seconds?: number;
            step_id?: string;
            /** Format: int64 */
            step_number?: number;
            /** Format: double */
            step_seconds?: number;
            /** Format: int64 */
            target_connections?: number;
            /** Format: double */
            target_qps?: number;
            /** Format: int64 */
            worker_group_id?: number;
            worker_id?: string;
        };
        EventPage: {
            events: components["schemas"]["Event"][] | null;
            /**
             * Format: int64
             * @description Give it as after to read on.
             */
            last_sequence: number;
            /**
             * Format: int64
             * @description How many events the run has.
             */
            total: number;
        };
        Execution: {
            /**
             * Format: double
             * @description The latency; at a rate from when it was due.
             */
            app_elapsed_ms: number;
            /** Format: int32 */
            connection_id: number;
            /** Format: double */
            decode_ms: number;
            /** Format: date-time */
            due_at: string | null;
            /**
             * Format: date-time
             * @description The instant by which charts count it.
             */
            ended_at: string | null;
            error_class: string;
            error_code: string;
            error_message: string;
            /** @enum {string} */
            kind: "POINT_LOOKUP" | "RANGE_SCAN" | "INSERT" | "UPDATE" | "DELETE" | "GENERIC_SQL" | "TRANSACTION";
            /** @enum {string} */
            phase: "WARMUP" | "MEASUREMENT";
            /** Format: double */
            pool_wait_ms: number;
            /**
             * Format: int32
             * @description 0 for an execution; statements inside a transaction are numbered from 1.
             */
            position: number;
            /** Format: int32 */
            retries: number;
            rolled_back: boolean;
            /** Format: int32 */
            rows: number;
            /** Format: double */
            schedule_lag_ms: number;
            /**
             * Format: int32
             * @description The number of the execution on its connection, from 0.
             */
            seq: number;
            server_query_id: string;
            /** Format: date-time */
            started_at: string | null;
            statement_id: string;
            /**
             * Format: int32
             * @description Of a search, from 1; else 0.
             */
            step: number;
            success: boolean;
            worker_id: string;
        };
        ExecutionPage: {
            executions: components["schemas"]["Execution"][];
            /** @description Give it as cursor to read on; empty after the last. */
            next_cursor: string;
            record: components["schemas"]["RecordRead"];
        };
        Failing: {
            error: string;
            /** Format: date-time */
            failed_at: string | null;
            /**
             * Format: int64
             * @description How often in a row.
             */
            failures: number;
            /** @description It has failed too often, and is left alone until somebody resumes the table, or the run changes. */
            given_up: boolean;
            /** @description The id of the run, or the part. */
            subtask: string;
        };
        FailingTime: {
            /** Format: int64 */
            errors: number;
            /** Format: date-time */
            from: string | null;
            /** @enum {string} */
            kind?: "POINT_LOOKUP" | "RANGE_SCAN" | "INSERT" | "UPDATE" | "DELETE" | "GENERIC_SQL" | "TRANSACTION";
            /** Format: int64 */
            operations: number;
            /** Format: double */
            seconds: number;
            statement_id?: string;
            to_the_end?: boolean;
        };
        Failure: {
            /** Format: int64 */
            count: number;
            error_class: string;
            error_code: string;
            /** @description The most frequent messages. */
            examples: components["schemas"]["FailureExample"][];
            /** Format: date-time */
            first_at: string | null;
            /** @description A statement inside a transaction, which is no execution of its own. */
            inside_transaction: boolean;
            /** @enum {string} */
            kind: "POINT_LOOKUP" | "RANGE_SCAN" | "INSERT" | "UPDATE" | "DELETE" | "GENERIC_SQL" | "TRANSACTION";
            /** Format: date-time */
            last_at: string | null;
            /**
             * Format: int64
             * @description How many different messages there are; of more than 1000 the rest is one.
             */
            messages_count: number;
            /** Format: double */
            slowest_ms: number;
            /** @description The statement's text; empty for a transaction, whose statements have theirs. */
            sql: string;
            statement_id: string;
            /**
             * Format: int64
             * @description Those of count that were in the warm-up, and in no figure.
             */
            warmup_count: number;
            /** Format: int64 */
            worker_count: number;
        };
        FailureExample: {
            /** Format: int64 */
            count: number;
            message: string;
        };
        Failures: {
            /** @description The most frequent first, 200 at most. */
            failures: components["schemas"]["Failure"][];
            record: components["schemas"]["RecordRead"];
            /**
             * Format: int64
             * @description How many groups there are.
             */
            total_count: number;
        };
        Feed: {
            csv?: string;
            run?: string;
        };
        FieldError: {
            /** Format: int64 */
            column?: number;
            excerpt?: string;
            field: string;
            hint?: string;
            /** Format: int64 */
            line?: number;
            message: string;
            subject?: string;
        };
        Figures: {
            accounting: components["schemas"]["Accounting"];
            beginning?: components["schemas"]["Beginning"];
            by_kind: {
                [key: string]: components["schemas"]["KindFigures"];
            } | null;
            by_load?: components["schemas"]["LoadPart"][] | null;
            by_statement: components["schemas"]["StatementFigures"][] | null;
            /** Format: int64 */
            carried_over: number | null;
            connections: components["schemas"]["ConnectionFigures"] | null;
            coordinated_omission: components["schemas"]["Omission"] | null;
            counts_missing?: boolean;
            counts_only?: boolean;
            /** Format: double */
            covered_seconds: number | null;
            /** Format: double */
            drain_seconds: number | null;
            /** Format: double */
            duration_seconds: number | null;
            errors: components["schemas"]["WorkerErrors"];
            failing?: components["schemas"]["FailingTime"][] | null;
            findings?: components["schemas"]["Finding"][] | null;
            /** Format: int64 */
            finished_late: number | null;
            freezes?: components["schemas"]["Freezes"];
            histogram: components["schemas"]["HistogramBucket"][] | null;
            /** Format: int64 */
            keys_replaced: number;
            latency_ms: components["schemas"]["LatencyMs"] | null;
            latency_split: components["schemas"]["SplitMs"] | null;
            live_percentiles: components["schemas"]["LivePercentile"][] | null;
            /** Format: date-time */
            measured_from: string | null;
            /** Format: date-time */
            measured_to: string | null;
            /** Format: int64 */
            operations: number;
            outages?: components["schemas"]["Outage"][] | null;
            /** Format: double */
            qps: number | null;
            /** Format: int64 */
            reads: number | null;
            record_partial?: boolean;
            /** Format: int64 */
            retries: number | null;
            schedule_lag_ms: components["schemas"]["LatencyMs"] | null;
            server_time?: components["schemas"]["ServerTime"];
            service_ms: components["schemas"]["LatencyMs"] | null;
            slowest: components["schemas"]["SlowExecution"][] | null;
            stalls?: components["schemas"]["Stall"][] | null;
            /** Format: double */
            target_qps: number | null;
            transactions: components["schemas"]["TransactionFigures"] | null;
            /** Format: int64 */
            unknown_outcomes?: number;
            /** Format: int64 */
            writes: number | null;
        };
        Fill: {
            as: string;
            /** Format: int64 */
            from?: number;
            /** Format: int64 */
            max?: number;
            /** Format: int64 */
            min?: number;
            prefix?: string;
            /** Format: int64 */
            scale?: number;
            /** Format: int64 */
            step?: number;
            values?: string[] | null;
        };
        Finding: {
            /** Format: date-time */
            from: string | null;
            /** @enum {string} */
            level: "finding" | "note";
            object?: string;
            rule: string;
            /** Format: double */
            seconds: number;
            /** Format: double */
            share: number | null;
            /** Format: double */
            share_high: number | null;
            /** Format: double */
            share_low: number | null;
            statement_id?: string;
            text: string;
            title: string;
            /** Format: date-time */
            to: string | null;
            try?: string;
            who?: components["schemas"]["FindingSession"];
        };
        FindingSession: {
            application?: string;
            ours?: boolean;
            session: string;
            statement?: string;
            user?: string;
        };
        FindMax: {
            /** Format: int64 */
            concurrency_increment: number;
            enabled: boolean;
            /** Format: double */
            latency_stability_pct: number;
            /** Format: int64 */
            max_concurrency: number | null;
            /** Format: double */
            max_duration_seconds: number;
            /** Format: double */
            max_error_rate_pct: number;
            /** Format: double */
            max_rate: number | null;
            /** Format: double */
            qps_stability_pct: number;
            /** Format: double */
            rate_increment: number | null;
            slo?: components["schemas"]["SLO"];
            /** Format: int64 */
            start_concurrency: number;
            /** Format: double */
            start_rate: number | null;
            /** Format: double */
            step_duration_seconds: number;
            /** @enum {string} */
            unit: "connections" | "rate";
        };
        FindMaxHysteresis: {
            /** Format: double */
            after: number;
            /** Format: double */
            fails_at: number;
            /** Format: double */
            recovers_at: number;
        };
        FindMaxRepetition: {
            /** Format: double */
            baseline_p95_ms: number | null;
            confirmed: boolean;
            /** Format: double */
            error_rate: number | null;
            /** Format: double */
            first_unstable: number | null;
            found: boolean;
            /** Format: double */
            level: number | null;
            /** @enum {string} */
            limit?: "STABLE" | "DEGRADED" | "ERROR_THRESHOLD" | "QUEUE_DETECTED" | "PLATEAU";
            /** Format: double */
            p50_latency_ms: number | null;
            /** Format: double */
            p95_latency_ms: number | null;
            /** Format: double */
            p99_latency_ms: number | null;
            /** Format: double */
            qps: number | null;
            reason: string;
            /** Format: int64 */
            repetition: number;
            /** Format: int64 */
            steps: number;
        };
        FindMaxResult: {
            /** Format: double */
            baseline_p95_ms: number | null;
            confirmed: boolean;
            /** Format: double */
            error_rate: number | null;
            /** Format: double */
            first_unstable: number | null;
            found: boolean;
            history: components["schemas"]["FindMaxStep"][] | null;
            hysteresis: components["schemas"]["FindMaxHysteresis"] | null;
            /** Format: int64 */
            late_steps: number;
            /** @enum {string} */
            limit?: "STABLE" | "DEGRADED" | "ERROR_THRESHOLD" | "QUEUE_DETECTED" | "PLATEAU";
            /** Format: int64 */
            max_connections: number | null;
            /** Format: double */
            max_target_qps: number | null;
            not_enough_operations: boolean;
            /** Format: double */
            p50_latency_ms: number | null;
            /** Format: double */
            p95_latency_ms: number | null;
            /** Format: double */
            p99_latency_ms: number | null;
            /** Format: double */
            qps: number | null;
            reason: string;
            repetitions?: components["schemas"]["FindMaxRepetition"][] | null;
            spread?: components["schemas"]["FindMaxSpread"];
            /** Format: int64 */
            steps: number;
            /** @enum {string} */
            unit: "connections" | "rate";
            /** Format: double */
            upper_bound: number;
        };
        FindMaxSpread: {
            /** Format: int64 */
            asked: number;
            /** Format: int64 */
            finished: number;
            /** Format: int64 */
            found: number;
            level: components["schemas"]["Dispersion"] | null;
            qps: components["schemas"]["Dispersion"] | null;
        };
        FindMaxState: {
            /** Format: double */
            baseline_p95_ms: number | null;
            /** Format: double */
            current_p95_ms: number | null;
            /** Format: int64 */
            current_step: number;
            /** Format: double */
            error_rate: number | null;
            /** Format: double */
            first_unstable: number | null;
            /** Format: double */
            last_stable: number | null;
            /** Format: date-time */
            last_updated: string | null;
            /** Format: double */
            p95_vs_baseline_pct: number | null;
            /** Format: double */
            qps: number | null;
            /** Format: double */
            qps_vs_prior_pct: number | null;
            queue_detected: boolean;
            /** Format: int64 */
            repeat: number;
            /** Format: int64 */
            repetition: number;
            repetitions: components["schemas"]["FindMaxRepetition"][] | null;
            result: components["schemas"]["FindMaxResult"] | null;
            /** @enum {string} */
            status: "STEPPING" | "BISECTING" | "CONFIRMING" | "RECOVERING" | "OVERLOADING" | "DONE";
            /** Format: double */
            step_duration_seconds: number;
            /** Format: double */
            step_elapsed_seconds: number;
            step_id?: string;
            steps: components["schemas"]["FindMaxStep"][] | null;
            /** Format: double */
            target_qps: number | null;
            /** Format: int64 */
            target_workers: number;
            /** @enum {string} */
            unit: "connections" | "rate";
            /** Format: double */
            upper_bound: number;
        };
        FindMaxStep: {
            /** Format: int64 */
            dropped_count: number;
            /** Format: int64 */
            error_count: number;
            /** Format: double */
            error_rate: number | null;
            /** @enum {string} */
            outcome: "STABLE" | "DEGRADED" | "ERROR_THRESHOLD" | "QUEUE_DETECTED" | "PLATEAU";
            /** Format: double */
            p50_latency_ms: number | null;
            /** Format: double */
            p95_latency_ms: number | null;
            /** Format: double */
            p95_vs_baseline_pct: number | null;
            /** Format: double */
            p99_latency_ms: number | null;
            /** Format: double */
            qps: number;
            /** Format: double */
            qps_vs_prior_pct: number | null;
            queue_detected: boolean;
            /** Format: int64 */
            repetition: number;
            /** @enum {string} */
            stage: "STEPPING" | "BISECTING" | "CONFIRMING" | "RECOVERING" | "OVERLOADING" | "DONE";
            /** Format: double */
            step_duration_seconds: number;
            /** Format: date-time */
            step_end_time: string | null;
            step_id?: string;
            /** Format: int64 */
            step_number: number;
            /** Format: date-time */
            step_start_time: string | null;
            stop_reason?: string;
            /** Format: double */
            target_qps: number | null;
            /** Format: int64 */
            total_queries: number;
            /** Format: int64 */
            total_target_connections: number;
        };
        FragmentCounts: {
            /**
             * Format: int64
             * @description Rows that it read, or was sent by other fragments.
             */
            in: number;
            /** Format: double */
            in_per_second: number;
            /**
             * Format: int64
             * @description Rows that it sent to another fragment, or wrote to the sink.
             */
            out: number;
            /** Format: double */
            out_per_second: number;
        };
        FreeRows: {
            /** Format: int64 */
            columns: number;
            constraint: string[] | null;
            /** Format: int64 */
            left: number;
            taken?: string[] | null;
        };
        Freezes: {
            /** Format: int64 */
            count: number;
            /** Format: double */
            longest_seconds: number;
            /** Format: double */
            seconds: number;
            times: components["schemas"]["Stall"][] | null;
        };
        GeneratorSample: {
            name: string;
            needs_table: boolean;
            problem?: string;
            type?: string;
            values: (string | null)[] | null;
        };
        GivenHook: {
            /** @description finished, regressed, threshold, failed, missed. */
            events: string[];
            /** @description The sender of an e-mail. */
            from?: string;
            /** @description Of a hook that there is; without it a new one is made. */
            id?: string;
            /** @enum {string} */
            kind: "webhook" | "slack" | "email";
            name: string;
            /** @description Takes over an unchanged hook: the caller owns it then, and it is no longer suspended. A changed hook is the caller's in any case. */
            resume?: boolean;
            /** @description The key of the signature: X-Loadstone-Signature is sha256= and the HMAC of X-Loadstone-Timestamp, a dot and the body. Of an e-mail, the password of the mail server. Left out, the saved one stays; an empty one removes it. */
            secret?: string;
            /** @description Send notifications only for runs that have all of these tags. */
            tags?: {
                [key: string]: string;
            };
            /** @description Send notifications for runs of this template only. */
            template_id?: string;
            /** @description The recipients of an e-mail. */
            to?: string[] | null;
            /** @description The address; left out, the saved one stays. Only scheme, host and port are shown again. Of an e-mail, the mail server: smtp://HOST:587 for STARTTLS, smtps://HOST:465 for TLS, smtp+plaintext://HOST:25 for neither TLS nor a password. */
            url?: string;
            /** @description The user of the mail server. */
            user?: string;
        };
        GivenPrices: {
            /** @description YAML; an empty text takes what was saved away. */
            text: string;
            /**
             * Format: int64
             * @description That which was edited; 0 before anything was saved.
             */
            version: number;
        };
        GivenRules: {
            /**
             * Format: double
             * @description What single executions may take altogether, in units of 10^9 bytes: above it those of the oldest runs are deleted; 0 is no bound.
             */
            executions_budget_gb: number;
            /**
             * Format: int64
             * @description The single executions of runs that ended earlier are deleted, and their figures stay; 0 keeps them.
             */
            keep_executions_days: number;
            /**
             * Format: int64
             * @description Runs that ended earlier are deleted; 0 keeps them.
             */
            keep_runs_days: number;
            /** @description Runs with one of these tags stay; * is any tag. */
            keep_tags: string[];
            /** @description False keeps everything, whatever the rest says. */
            on: boolean;
            /**
             * Format: int64
             * @description That which was edited; 0 before anything was saved.
             */
            version: number;
        };
        Guardrails: {
            /** Format: double */
            hold_seconds?: number;
            /** Format: double */
            max_cpu_percent?: number;
            /** Format: double */
            max_error_rate_pct?: number;
            /** Format: double */
            max_host_cpu_percent?: number;
            /** Format: double */
            max_host_memory_percent?: number;
            /** Format: double */
            max_memory_percent?: number;
            /** Format: double */
            max_p95_ms?: number;
            /** Format: double */
            max_p99_ms?: number;
        };
        GuardrailState: {
            /** Format: double */
            held_seconds: number;
            /** Format: double */
            hold_seconds: number;
            /** Format: double */
            limit: number;
            /** @enum {string} */
            name: "max_cpu_percent" | "max_memory_percent" | "max_host_cpu_percent" | "max_host_memory_percent" | "max_error_rate_pct" | "max_p95_ms" | "max_p99_ms";
            /** Format: double */
            value: number | null;
        };
        Healthy: {
            /** @enum {string} */
            status: "ok";
        };
        HiddenPercentile: {
            /** Format: double */
            ms: number;
            name: string;
            /** Format: double */
            would_ms: number;
        };
        HistogramBucket: {
            /** Format: int64 */
            count: number;
            /** Format: double */
            from_ms: number;
            /** Format: double */
            to_ms: number;
        };
        HistogramData: {
            counts: number[] | null;
            /** Format: int64 */
            max_ns: number;
            /** Format: int64 */
            min_ns: number;
            /** Format: int64 */
            offset: number;
            /** Format: int64 */
            schema: number;
            /** Format: int64 */
            sum_ns: number;
        };
        Hook: {
            address: string;
            events: string[] | null;
            /** @description Of an e-mail: its sender. */
            from?: string;
            id: string;
            kind: string;
            name: string;
            /** @description The admin who made it, changed it last, or resumed it last. It is suspended when that user is locked out, deleted or no admin any more. Empty of hooks made before they had owners. */
            owner?: string;
            owner_id?: string;
            /** @description Whether there is a secret: webhooks are signed with it, and mail servers take it as a password. */
            signed: boolean;
            /** @description Why nothing is sent; empty while it is active. An admin who changes it, or saves it with resume, takes it over. */
            suspended_reason?: string;
            tags?: {
                [key: string]: string;
            };
            template_id?: string;
            /** @description Of an e-mail: its recipients. */
            to?: string[] | null;
            /** @description Of an e-mail: the user of the mail server. */
            user?: string;
        };
        Info: {
            /** @enum {string} */
            control_store: "embedded" | "external";
            /**
             * Format: int64
             * @description Free space where results are kept; null when unknown.
             */
            data_dir_free_bytes: number | null;
            go_version: string;
            /**
             * Format: int64
             * @description Nodes that can host run workers now.
             */
            nodes: number;
            /** @description Whether the built-in sample Postgres is there. */
            playground: boolean;
            /** Format: date-time */
            started_at: string | null;
            version: string;
            /** Format: int64 */
            websocket_clients: number;
        };
        Invitation: {
            /** Format: date-time */
            expires_at: string | null;
            /** @description Works once. Whoever has it becomes this user. */
            url: string;
            user: components["schemas"]["User"];
        };
        IOCost: {
            /** Format: double */
            cost_ns_per_operation: number;
            /** @enum {string} */
            io_engine: "auto" | "io_uring" | "events" | "goroutines";
            /** Format: double */
            max_qps: number;
            refused?: string;
        };
        KeptBinds: {
            /** @description Those that failed, the first ones of each error of a statement, by time; then the slowest of each statement, the slowest first. */
            executions: components["schemas"]["KeptExecution"][];
            /**
             * Format: int64
             * @description How many that failed or were slow, of the whole run, there was no room for: run workers keep 8 MiB together, and each tells 400 errors of statements apart.
             */
            left_out: number;
            /**
             * @description What the run's template had kept.
             * @enum {string}
             */
            mode: "masked" | "plain" | "none";
            /**
             * Format: int64
             * @description How many match; the answer has at most 200.
             */
            total_count: number;
            /** @description Whether the values are in the answer. */
            values_shown: boolean;
        };
        KeptCall: {
            /**
             * Format: int32
             * @description Within the transaction, from 1 (BEGIN); else 0.
             */
            position: number;
            /** @description The statement's text, as it was frozen for the run. */
            sql: string;
            statement_id: string;
            values: components["schemas"]["KeptValue"][];
            /**
             * Format: int64
             * @description How many further parameters were not kept.
             */
            values_left_out: number;
        };
        KeptExecution: {
            /**
             * Format: double
             * @description The latency; at a rate from when it was due.
             */
            app_elapsed_ms: number;
            /** @description The statements with their parameters: one, or those of a transaction as they were sent. */
            calls: components["schemas"]["KeptCall"][];
            /**
             * Format: int64
             * @description How many further statements of the transaction were not kept.
             */
            calls_left_out: number;
            /** Format: int32 */
            connection_id: number;
            /** Format: date-time */
            ended_at: string | null;
            error_class: string;
            error_code: string;
            /** @description Without the values in it, unless values are shown. */
            error_message: string;
            /** @enum {string} */
            kind: "POINT_LOOKUP" | "RANGE_SCAN" | "INSERT" | "UPDATE" | "DELETE" | "GENERIC_SQL" | "TRANSACTION";
            /** @enum {string} */
            phase: "WARMUP" | "MEASUREMENT";
            /**
             * Format: int32
             * @description 0 for an execution; statements inside a transaction are numbered from 1.
             */
            position: number;
            /** Format: int32 */
            retries: number;
            /**
             * Format: int32
             * @description The number of the execution on its connection, from 0.
             */
            seq: number;
            /**
             * Format: double
             * @description How long the database took. The slowest are chosen by it, without the time that an execution waited before.
             */
            service_ms: number;
            /** Format: date-time */
            started_at: string | null;
            statement_id: string;
            /** @enum {string} */
            why: "failed" | "slow";
            worker_id: string;
        };
        KeptRuns: {
            /** @enum {string} */
            by: "baseline" | "note" | "share" | "replay" | "matrix" | "tag";
            /** Format: int64 */
            count: number;
        };
        KeptValue: {
            /** @description Of a long text only the beginning was kept. */
            cut: boolean;
            /**
             * Format: int64
             * @description Of a text in bytes, all of it; else 0.
             */
            length: number;
            /** @description As the workload names it; may be empty. */
            name: string;
            /** @description The parameters in the statement's text that take it, from 1. */
            parameters: number[];
            /** @description The value; null where it is masked, and for NULL. Bytes are hexadecimal. */
            text: string | null;
            /**
             * @description ref is a column of an earlier answer of the transaction.
             * @enum {string}
             */
            type: "i64" | "f64" | "text" | "bytes" | "bool" | "timestamp" | "ref" | "null";
        };
        KindCurve: {
            errors_per_sec: (number | null)[];
            /** @enum {string} */
            kind: "POINT_LOOKUP" | "RANGE_SCAN" | "INSERT" | "UPDATE" | "DELETE" | "GENERIC_SQL" | "TRANSACTION";
            p50_ms: (number | null)[];
            p95_ms: (number | null)[];
            p99_ms: (number | null)[];
            qps: (number | null)[];
        };
        KindCurves: {
            elapsed_seconds: number[];
            kinds: components["schemas"]["KindCurve"][];
            /** Format: double */
            resolution_seconds: number;
            run_id: string;
        };
        KindEnrichment: {
            /** Format: int64 */
            executions: number;
            figures: components["schemas"]["ServerFigures"] | null;
            /** Format: int64 */
            matched: number;
            /** Format: double */
            ratio: number;
        };
        KindFigures: {
            /** Format: int64 */
            carried_over?: number;
            /** Format: int64 */
            count: number;
            /** Format: int64 */
            errors: number;
            /** Format: int64 */
            finished_late?: number;
            latency_ms: components["schemas"]["LatencyMs"] | null;
            /** Format: int64 */
            no_rows: number;
            /** Format: double */
            qps: number | null;
            /** Format: int64 */
            rows: number;
        };
        KindRate: {
            /** Format: int64 */
            errors: number;
            /** Format: double */
            per_sec: number;
            /** Format: int64 */
            total: number;
        };
        KnownQueryLogin: {
            name: string;
            /** @description The admin who made it, or gave it its password last. Empty of one made before logins had owners, and of a user that was deleted. */
            owner: string;
            /** @description Whether it is not let in: its owner is locked out, deleted or no admin any more. new_password lets it in again. */
            suspended: boolean;
        };
        Latency: {
            /** Format: double */
            avg: number | null;
            /** Format: double */
            max: number | null;
            /** Format: double */
            min: number | null;
            /** Format: double */
            p50: number | null;
            /** Format: double */
            p95: number | null;
            /** Format: double */
            p99: number | null;
        };
        LatencyMs: {
            /** Format: double */
            avg: number;
            /** Format: double */
            max: number;
            /** Format: double */
            min: number;
            /** Format: double */
            p50: number;
            /** Format: double */
            p90: number;
            /** Format: double */
            p95: number;
            /** Format: double */
            p99: number;
            /** Format: double */
            p999: number;
            /** Format: double */
            stddev: number;
        };
        LeastCost: {
            /** Format: int64 */
            clusters: number;
            /** Format: double */
            credits: number | null;
            currency: string;
            note?: string;
            /** Format: double */
            price: number | null;
            price_list: string;
            /** Format: double */
            seconds: number;
            warehouse: string;
            warehouse_size: string;
            warehouse_type: string;
        };
        LeftPlace: {
            /** @description Where that is, in the words of a server that keeps files there. */
            label: string;
            /** @description Names the place; empty where it is not known. */
            place: string;
            /** @description Why the last attempt failed; it is tried again. */
            problem?: string;
            /**
             * Format: int64
             * @description Of how many runs files are still to be removed.
             */
            runs: number;
            /**
             * Format: date-time
             * @description When a server last reached the place; null where none is known to.
             */
            seen_at: string | null;
            /**
             * Format: date-time
             * @description Since when the first of them is.
             */
            since: string | null;
            /**
             * Format: date-time
             * @description When the last attempt failed; null where none has.
             */
            tried_at: string | null;
        };
        Link: {
            /** Format: date-time */
            expires_at: string | null;
            url: string;
        };
        LivePercentile: {
            /** Format: double */
            error_pct: number | null;
            /** Format: double */
            exact_ms: number;
            /** Format: double */
            live_ms: number;
            /** Format: double */
            percentile: number;
        };
        LoadInput: {
            /**
             * Format: int64
             * @description Connections of a run of the mode CONCURRENCY, all together.
             */
            connections?: number;
            /**
             * Format: double
             * @description Operations per second of a run of the mode QPS.
             */
            target_qps?: number;
        };
        LoadPart: {
            /** Format: int64 */
            carried_over?: number;
            /** Format: int64 */
            errors: number;
            /** Format: date-time */
            from: string | null;
            /** Format: double */
            load: number;
            /** Format: int64 */
            operations: number;
            /** Format: double */
            p50_ms: number | null;
            /** Format: double */
            p95_ms: number | null;
            /** Format: double */
            p99_ms: number | null;
            /** Format: double */
            qps: number | null;
            /** Format: date-time */
            to: string | null;
        };
        LogEntry: {
            details?: unknown;
            /** @enum {string} */
            level: "INFO" | "WARNING" | "ERROR" | "CRITICAL";
            message: string;
            run_id: string;
            /** Format: int64 */
            seq: number;
            test_id?: string;
            /** Format: date-time */
            timestamp: string;
            worker_id?: string;
        };
        LogicalColumn: {
            db_type?: {
                [key: string]: string;
            };
            fill?: components["schemas"]["Fill"];
            name: string;
            nullable?: boolean;
            type: string;
        };
        LogicalIndex: {
            columns: string[] | null;
            include?: string[] | null;
            unique?: boolean;
        };
        LogicalTable: {
            any_shape?: boolean;
            columns: components["schemas"]["LogicalColumn"][] | null;
            computed_keys?: boolean;
            empty?: boolean;
            indexes?: components["schemas"]["LogicalIndex"][] | null;
            inserts?: boolean;
            key: string[] | null;
            name: string;
            options?: {
                [key: string]: string;
            };
            own_keys?: boolean;
            /** Format: int64 */
            rows?: number;
            sized_by?: string;
            varies?: boolean;
        };
        LogPage: {
            /**
             * Format: int64
             * @description Give it as after to read on.
             */
            last_seq: number;
            logs: components["schemas"]["LogEntry"][] | null;
        };
        Manifest: {
            author?: string;
            description?: string;
            dialect?: string;
            driver?: string;
            feed?: boolean;
            /** @enum {string} */
            kind: "workload" | "adapter";
            kinds?: ("POINT_LOOKUP" | "RANGE_SCAN" | "INSERT" | "UPDATE" | "DELETE" | "GENERIC_SQL" | "TRANSACTION")[];
            name: string;
            observes?: boolean;
            parameters?: unknown;
            sends?: components["schemas"]["Sends"];
            statements?: components["schemas"]["PluginStatement"][] | null;
            supports?: components["schemas"]["Supports"];
            tables?: components["schemas"]["LogicalTable"][] | null;
            tables_vary?: boolean;
            title?: string;
            version: string;
        };
        Mark: {
            /** Format: date-time */
            at: string | null;
            /** Format: date-time */
            changed_at: string | null;
            changed_by: string;
            /** Format: date-time */
            made_at: string | null;
            made_by: string;
            mark_id: string;
            run_id: string;
            text: string;
        };
        MarkChange: {
            /**
             * Format: date-time
             * @description When, RFC 3339.
             */
            at: string;
            /** @description What happened, for example: index created. */
            text: string;
            /** @description The mark that was edited; 409 when it is another by now. Without it, whatever is there is replaced. */
            was?: components["schemas"]["MarkWas"];
        };
        MarkInput: {
            /**
             * Format: date-time
             * @description When, RFC 3339; now without it.
             */
            at?: string;
            /** @description What happened, for example: index created. */
            text: string;
        };
        MarkList: {
            marks: components["schemas"]["Mark"][];
        };
        MarkWas: {
            /**
             * Format: date-time
             * @description RFC 3339, to the millisecond.
             */
            at: string;
            text: string;
        };
        Matrix: {
            stop_on_failure: boolean;
            targets: components["schemas"]["MatrixTarget"][] | null;
        };
        MatrixList: {
            matrices: components["schemas"]["MatrixRun"][] | null;
        };
        MatrixReport: {
            /** Format: date-time */
            created_at: string | null;
            created_by?: string;
            /** Format: date-time */
            end_time: string | null;
            labels: string[] | null;
            matrix_id: string;
            name: string;
            passed: boolean;
            simulated: boolean;
            /** Format: date-time */
            start_time: string | null;
            /** @enum {string} */
            status: "PREPARED" | "RUNNING" | "STOPPING" | "CANCELLING" | "COMPLETED" | "FAILED" | "CANCELLED";
            stop_on_failure: boolean;
            targets: components["schemas"]["TargetReport"][] | null;
            template_id?: string;
            /** Format: double */
            tolerance_pct: number;
        };
        MatrixRun: {
            /** Format: date-time */
            created_at: string | null;
            created_by?: string;
            /** Format: date-time */
            end_time: string | null;
            labels: string[] | null;
            matrix_id: string;
            name: string;
            /** Format: date-time */
            start_time: string | null;
            /** @enum {string} */
            status: "PREPARED" | "RUNNING" | "STOPPING" | "CANCELLING" | "COMPLETED" | "FAILED" | "CANCELLED";
            stop_on_failure: boolean;
            template_id?: string;
        };
        MatrixState: {
            /** Format: date-time */
            created_at: string | null;
            created_by?: string;
            /** Format: date-time */
            end_time: string | null;
            labels: string[] | null;
            matrix_id: string;
            name: string;
            runs: components["schemas"]["RunRow"][] | null;
            /** Format: date-time */
            start_time: string | null;
            /** @enum {string} */
            status: "PREPARED" | "RUNNING" | "STOPPING" | "CANCELLING" | "COMPLETED" | "FAILED" | "CANCELLED";
            stop_on_failure: boolean;
            template_id?: string;
        };
        MatrixTarget: {
            adapter: string;
            allow_writes?: boolean;
            /** @description The name of a saved connection, or a connection spelled out. Passwords read as ***. */
            connection: string | {
                driver?: string;
                dsn?: string;
            };
            connection_id?: string;
            housekeeping_warehouse?: string;
            label: string;
            params?: unknown;
            prepare?: components["schemas"]["Prepare"];
            prepared?: boolean;
            table_name?: string;
            table_type?: string;
            warehouse?: string;
        };
        Me: {
            token: components["schemas"]["Token"];
            user: components["schemas"]["User"];
        };
        MeasuredSecond: {
            /** Format: int64 */
            carried_over?: number;
            /** Format: int64 */
            errors: number;
            latency: components["schemas"]["HistogramData"] | null;
            /** Format: int64 */
            operations: number;
            /** Format: double */
            seconds?: number;
        };
        MeasuredSeconds: {
            seconds: components["schemas"]["MeasuredSecond"][] | null;
        };
        Message: {
            data: components["schemas"]["Payload"] | null;
            /** @enum {string} */
            event: "RUN_UPDATE";
        };
        Metric: {
            /** Format: double */
            a: number | null;
            /** Format: double */
            b: number | null;
            /** Format: double */
            detectable: number | null;
            /** Format: double */
            difference: number | null;
            /** Format: double */
            high: number | null;
            /** Format: double */
            low: number | null;
            /** Format: int64 */
            more_runs: number | null;
            name: string;
            reason: string;
            unit: string;
            /** @enum {string} */
            verdict: "better" | "worse" | "same" | "unclear";
        };
        Needs: {
            /** Format: date-time */
            at: string | null;
            nodes: components["schemas"]["NodeRoom"][];
            /**
             * Format: double
             * @description How long the first of them has waited; 0 when none waits.
             */
            oldest_wait_seconds: number;
            /**
             * Format: int64
             * @description Refreshes of derived tables, and finished runs to be taken in, that are due or under way.
             */
            pending_refresh_count: number;
            /**
             * Format: int64
             * @description Runs queued for capacity on nodes.
             */
            queue_depth: number;
            /**
             * Format: double
             * @description How long the oldest of them that no worker has has been due.
             */
            refresh_backlog_seconds: number;
            /**
             * Format: double
             * @description How long the newest 500 refreshes took that succeeded, the 95th percentile; 0 without any.
             */
            refresh_duration_p95_seconds: number;
            /**
             * Format: int64
             * @description Connections that they hold.
             */
            reserved_connections: number;
            /**
             * Format: int64
             * @description Runs that hold room on nodes.
             */
            runs_running: number;
            /**
             * Format: int64
             * @description The median capacity of the nodes that take run workers; 0 when there is none, or no limit.
             */
            typical_node_capacity: number;
            /** @description The runs that wait, the longest first. */
            waiting: components["schemas"]["WaitingInfo"][];
            /**
             * Format: int64
             * @description Connections that the others wait for.
             */
            waiting_connections: number;
            /**
             * Format: int64
             * @description How many nodes the demand needs: typical ones that hold the run workers of all runs that run or wait, no fewer than carry something now; 0 when there is no demand. The servers' own nodes, and what only they can carry, are no part of it.
             */
            wanted_nodes: number;
        };
        NewNodeToken: {
            /** Format: date-time */
            created_at: string | null;
            created_by: string;
            created_by_id?: string;
            /** Format: date-time */
            expires_at: string | null;
            secret: string;
            token_id: string;
            /** Format: int64 */
            used: number;
            /**
             * Format: int64
             * @description How many nodes may join with it.
             */
            uses: number;
        };
        NewShare: {
            /** Format: date-time */
            created_at: string | null;
            created_by: string;
            created_by_id?: string;
            /** Format: date-time */
            expires_at: string | null;
            run_deleted: boolean;
            run_id: string;
            /** @description As it was when the link was made. */
            run_name: string;
            share_id: string;
            /** @description Whoever has it sees the report. It is shown this once. */
            url: string;
            /** Format: int64 */
            use_count: number;
            /**
             * Format: date-time
             * @description When it was opened last; null when it never was.
             */
            used_at: string | null;
        };
        NewToken: {
            /** Format: date-time */
            created_at: string | null;
            /** Format: date-time */
            expires_at: string | null;
            kind: string;
            /** Format: date-time */
            last_used_at: string | null;
            name: string;
            /** @enum {string} */
            scope: "read" | "run" | "metrics" | "write" | "admin";
            secret: string;
            token_id: string;
            user_id: string;
        };
        NewUserInputBody: {
            /** @description By which the user signs in: letters, digits and . _ @ + - */
            name: string;
            /**
             * @description viewer looks; operator makes templates, connections and tables and runs them; admin decides about users, nodes and plugins too.
             * @enum {string}
             */
            role: "admin" | "operator" | "viewer";
        };
        Node: {
            /** @description New run workers can be placed on it. */
            accepting_work: boolean;
            /** @description Where the server dials it; empty for the node of the server's own process. */
            address: string;
            /**
             * Format: int64
             * @description Most connections of all runs together; 0 is no limit.
             */
            capacity: number;
            /**
             * Format: double
             * @description How far the offset may be wrong, either way; null when that is not known.
             */
            clock_error_ms: number | null;
            /**
             * Format: double
             * @description How far its clock is ahead of the server's; null when that is not known.
             */
            clock_offset_ms: number | null;
            /**
             * @description By the last contact: HEALTHY under 30 s, STALE from 30 s, DEAD over 60 s.
             * @enum {string}
             */
            health: "HEALTHY" | "STALE" | "DEAD";
            /**
             * Format: double
             * @description How long the next answer may take, by the last round trip.
             */
            heartbeat_timeout_ms: number;
            /**
             * Format: date-time
             * @description When it last answered; null when it never has.
             */
            last_contact: string | null;
            /** @description The node of the server's own process. */
            local: boolean;
            /**
             * Format: int64
             * @description In a row; three make the node unreachable.
             */
            missed_heartbeats: number;
            /** @description The node's own name; empty while nobody has introduced itself at the address. */
            node_id: string;
            /** @description Why no run worker can be placed on it; empty while they can. */
            not_accepting_reason: string;
            /** @description Why the node is in its state, in words. */
            reason: string;
            /** @description CPU and memory of its process and its machine; null before its first status. */
            resources: components["schemas"]["Resources"] | null;
            /**
             * Format: double
             * @description The last round trip of a heartbeat; null when none was measured.
             */
            rtt_ms: number | null;
            run_workers: components["schemas"]["NodeRunWorker"][];
            /**
             * Format: date-time
             * @description When the state began; null where it never was another.
             */
            since: string | null;
            /** @enum {string} */
            state: "CONNECTING" | "ACTIVE" | "DRAINING" | "PROBING" | "UNREACHABLE" | "REMOVED";
            /** Format: int64 */
            used_connections: number;
            version: string;
            /**
             * @description What an operator has asked for; empty when nothing.
             * @enum {string}
             */
            wish: "" | "DRAIN" | "REMOVE";
        };
        NodeAddress: {
            /** Format: date-time */
            added_at: string | null;
            added_by: string;
            address: string;
        };
        NodeAddressInputBody: {
            /** @description host:port of the node, as servers reach it. */
            address: string;
        };
        NodeAddressList: {
            addresses: components["schemas"]["NodeAddress"][];
        };
        NodeEvent: {
            /** Format: date-time */
            at: string | null;
            /** @description The user who asked; empty without one. */
            by: string;
            /** @enum {string} */
            from?: "CONNECTING" | "ACTIVE" | "DRAINING" | "PROBING" | "UNREACHABLE" | "REMOVED";
            /** @enum {string} */
            kind: "STATE" | "OPERATOR" | "REFUSED";
            node_id: string;
            reason: string;
            /** Format: int64 */
            seq: number;
            /** @description Which server saw it: several may, each over its own stream. */
            server: string;
            /** @enum {string} */
            to?: "CONNECTING" | "ACTIVE" | "DRAINING" | "PROBING" | "UNREACHABLE" | "REMOVED";
        };
        NodeEventList: {
            events: components["schemas"]["NodeEvent"][];
            /**
             * Format: int64
             * @description Ask with before= this for older ones; absent on the last page.
             */
            next_before?: number;
        };
        NodeList: {
            /** Format: date-time */
            at: string | null;
            nodes: components["schemas"]["Node"][];
            /** @description The server that answers: several may share the nodes, each over its own streams. */
            server: string;
        };
        NodeRoom: {
            /** @description It takes run workers from the server that answers. */
            accepting_work: boolean;
            /**
             * Format: int64
             * @description Most connections of all runs together; 0 is no limit, or a node that this server does not know.
             */
            capacity: number;
            /** @description The own node of a server has the server's name behind an @. */
            node_id: string;
            /** Format: int64 */
            reserved_connections: number;
            /** Format: int64 */
            runs: number;
        };
        NodeRunWorker: {
            /** Format: int64 */
            connections: number;
            run_id: string;
            run_name: string;
            worker_id: string;
        };
        NodeToken: {
            /** Format: date-time */
            created_at: string | null;
            created_by: string;
            created_by_id?: string;
            /** Format: date-time */
            expires_at: string | null;
            token_id: string;
            /** Format: int64 */
            used: number;
            /**
             * Format: int64
             * @description How many nodes may join with it.
             */
            uses: number;
        };
        NodeTokenInputBody: {
            /**
             * Format: int64
             * @description How many nodes may join with it; 1 without it.
             */
            uses?: number;
            /**
             * Format: int64
             * @description An hour without it.
             */
            valid_seconds?: number;
        };
        NodeTokenList: {
            tokens: components["schemas"]["NodeToken"][];
        };
        Note: {
            address?: string;
            /** Format: date-time */
            at?: string | null;
            cause?: string;
            code: string;
            /** Format: int64 */
            count?: number;
            fallback_warehouse?: string;
            hidden?: components["schemas"]["HiddenPercentile"][] | null;
            /** @enum {string} */
            kind?: "POINT_LOOKUP" | "RANGE_SCAN" | "INSERT" | "UPDATE" | "DELETE" | "GENERIC_SQL" | "TRANSACTION";
            live?: boolean;
            /** Format: double */
            ms?: number;
            /** Format: double */
            new?: number;
            node?: string;
            /** Format: double */
            old?: number;
            part?: string;
            /** Format: double */
            percent?: number;
            /** Format: double */
            planned_seconds?: number;
            /** Format: double */
            seconds?: number;
            statement?: string;
            text?: string;
            /** Format: int64 */
            total?: number;
            user?: string;
            warehouse?: string;
            worker?: string;
            /** Format: double */
            worst?: number;
        };
        NoteInputBody: {
            text: string;
            /**
             * Format: int64
             * @description The version that was edited, 0 for the first note.
             */
            version: number;
        };
        Notifications: {
            /** @description The last attempts of this server since it started, the newest first. */
            deliveries: components["schemas"]["Delivery"][];
            hooks: components["schemas"]["Hook"][];
            /**
             * Format: int64
             * @description 0 before anything was saved; to be sent back with a change.
             */
            version: number;
        };
        Omission: {
            /** Format: int64 */
            missed_operations: number;
            /** Format: double */
            p50_ms: number;
            /** Format: double */
            p95_ms: number;
            /** Format: double */
            p99_ms: number;
            /** Format: double */
            p999_ms: number;
            /** Format: double */
            stalled_seconds: number;
        };
        Outage: {
            by_kind?: components["schemas"]["OutageKind"][] | null;
            /** Format: int64 */
            delayed: number;
            /** Format: double */
            down_seconds: number;
            /** Format: int64 */
            dropped: number | null;
            errors: {
                [key: string]: {
                    [key: string]: number;
                };
            } | null;
            /** Format: int64 */
            failed: number;
            /** Format: date-time */
            first_failure: string | null;
            /** Format: date-time */
            first_success_after: string | null;
            /** Format: date-time */
            full_rate_at: string | null;
            /** Format: double */
            full_rate_seconds: number | null;
            /** @enum {string} */
            kind?: "POINT_LOOKUP" | "RANGE_SCAN" | "INSERT" | "UPDATE" | "DELETE" | "GENERIC_SQL" | "TRANSACTION";
            /** Format: date-time */
            last_failure: string | null;
            /** Format: date-time */
            last_success_before: string | null;
            /** Format: int64 */
            number: number;
            /** Format: double */
            rate_before: number;
            server_after: components["schemas"]["ServerIdentity"] | null;
            server_before: components["schemas"]["ServerIdentity"] | null;
            to_the_end?: boolean;
            /** Format: int64 */
            unknown: number;
            warmup?: boolean;
        };
        OutageKind: {
            /** Format: int64 */
            delayed: number;
            /** Format: double */
            down_seconds: number;
            /** Format: int64 */
            failed: number;
            /** Format: date-time */
            first_success_after: string | null;
            /** @enum {string} */
            kind: "POINT_LOOKUP" | "RANGE_SCAN" | "INSERT" | "UPDATE" | "DELETE" | "GENERIC_SQL" | "TRANSACTION";
            /** Format: date-time */
            last_success_before: string | null;
            to_the_end?: boolean;
            /** Format: int64 */
            unknown: number;
        };
        OwnedToken: {
            /** Format: date-time */
            created_at: string | null;
            /** Format: date-time */
            expires_at: string | null;
            kind: string;
            /** Format: date-time */
            last_used_at: string | null;
            /** @description Whether its user is locked out, so that it is refused. */
            locked_out: boolean;
            name: string;
            /** @enum {string} */
            scope: "read" | "run" | "metrics" | "write" | "admin";
            token_id: string;
            user_id: string;
            user_name: string;
            user_role: string;
        };
        OwnedTokens: {
            tokens: components["schemas"]["OwnedToken"][];
            /**
             * Format: int64
             * @description How many there are; tokens has the newest 1 000 of them.
             */
            total: number;
        };
        PackedKeys: Record<string, never>;
        PartComparison: {
            kinds: components["schemas"]["ComparedPart"][];
            notes: string[];
            statements: components["schemas"]["ComparedPart"][];
        };
        Pass: {
            /**
             * Format: int64
             * @description What the executions took whose files are gone.
             */
            bytes_freed: number;
            /** @description The pass ended early: the rules changed, the server stopped or lost its lease, or the control store was unavailable. The next pass continues. */
            cut_short: boolean;
            /** Format: int64 */
            done: number;
            /**
             * Format: date-time
             * @description Null during the pass.
             */
            ended_at: string | null;
            /** @description What has gone wrong; it is tried again. */
            error?: string;
            /**
             * Format: int64
             * @description Of how many runs.
             */
            executions_deleted: number;
            /**
             * Format: int64
             * @description Of how many runs files could not be removed; it is tried again.
             */
            files_left: number;
            /**
             * Format: int64
             * @description By how much executions are above the budget still, because pinned and young runs stay.
             */
            over_budget_bytes: number;
            /**
             * Format: int64
             * @description How many runs go, or their executions.
             */
            planned: number;
            /** Format: int64 */
            runs_deleted: number;
            /** Format: date-time */
            started_at: string | null;
            /**
             * Format: int64
             * @description Runs that were pinned or restarted in the meantime.
             */
            stayed: number;
        };
        PasswordInputBody: {
            new_password: string;
            /** @description The current password; left out without one. */
            password?: string;
        };
        Payload: {
            cancellation_reason: string | null;
            connections: components["schemas"]["PayloadConnections"];
            custom_metrics: components["schemas"]["CustomMetrics"];
            /** Format: double */
            dropped_per_sec: number;
            /** Format: double */
            elapsed: number;
            emulated: boolean;
            enrichment: components["schemas"]["Enrichment"];
            errors: components["schemas"]["PayloadErrors"];
            find_max: components["schemas"]["FindMaxState"] | null;
            guardrails: components["schemas"]["GuardrailState"][] | null;
            /** Format: int64 */
            in_flight: number;
            latency: components["schemas"]["Latency"];
            latency_aggregation_method: string | null;
            latency_by_kind: {
                [key: string]: components["schemas"]["Latency"];
            } | null;
            latency_histogram: components["schemas"]["HistogramData"] | null;
            latency_split: components["schemas"]["SplitMs"] | null;
            latency_total: components["schemas"]["Latency"];
            logs: components["schemas"]["LogEntry"][] | null;
            /** Format: int64 */
            logs_dropped: number;
            operations: components["schemas"]["PayloadOperations"];
            ops: components["schemas"]["PayloadOps"];
            ops_by_kind: {
                [key: string]: components["schemas"]["KindRate"];
            } | null;
            /** @enum {string|null} */
            phase: "PREPARING" | "WARMUP" | "MEASUREMENT" | "COOLDOWN" | "PROCESSING" | "" | null;
            prepare: components["schemas"]["PrepareProgress"] | null;
            rules: components["schemas"]["RuleState"][] | null;
            run_id: string;
            schedule_lag: components["schemas"]["Latency"];
            service: components["schemas"]["Latency"];
            service_total: components["schemas"]["Latency"];
            simulated: boolean;
            /** @enum {string} */
            status: "PREPARED" | "RUNNING" | "STOPPING" | "CANCELLING" | "COMPLETED" | "FAILED" | "CANCELLED";
            /** Format: double */
            target_qps: number | null;
            test_id: string;
            test_name: string;
            /** Format: date-time */
            timestamp: string;
            timing: components["schemas"]["Timing"];
            validity: components["schemas"]["Validity"];
            /** Format: int64 */
            waiting: number;
            warehouse: components["schemas"]["Warehouse"] | null;
            workers: components["schemas"]["PayloadWorker"][] | null;
        };
        PayloadConnections: {
            /** Format: int64 */
            active: number;
            /** Format: int64 */
            lost: number;
            /** Format: int64 */
            missing: number;
            /** Format: int64 */
            refused: number;
            /** Format: int64 */
            reopened: number;
            /** Format: int64 */
            target: number;
        };
        PayloadErrors: {
            by_class: {
                [key: string]: number;
            } | null;
            /** Format: int64 */
            count: number;
            /** Format: int64 */
            dropped: number;
            /** Format: double */
            per_sec: number;
            /** Format: double */
            rate: number | null;
            recent: components["schemas"]["SeenError"][] | null;
            /** Format: int64 */
            retries: number;
        };
        PayloadOperations: {
            /** Format: int64 */
            reads: number;
            /** Format: double */
            reads_per_sec: number;
            /** Format: int64 */
            writes: number;
            /** Format: double */
            writes_per_sec: number;
        };
        PayloadOps: {
            /** Format: double */
            current_per_sec: number;
            /** Format: int64 */
            total: number;
        };
        PayloadWorker: {
            beginning: components["schemas"]["Beginning"] | null;
            /** @enum {string} */
            health: "HEALTHY" | "STALE" | "DEAD";
            /** Format: date-time */
            last_heartbeat: string | null;
            /** Format: date-time */
            load_ends_by: string | null;
            metrics: components["schemas"]["PayloadWorkerMetrics"];
            node_id: string;
            /** @enum {string} */
            phase: "PREPARING" | "WARMUP" | "MEASUREMENT" | "COOLDOWN" | "PROCESSING" | "";
            /** Format: date-time */
            silent_since: string | null;
            /** @enum {string} */
            status: "STARTING" | "READY" | "RUNNING" | "DRAINING" | "COMPLETED" | "FAILED" | "DEAD";
            /** Format: int64 */
            worker_group_id: number;
            worker_id: string;
        };
        PayloadWorkerMetrics: {
            /** Format: int64 */
            active_connections: number;
            /** Format: double */
            cpu_pct: number;
            /** Format: int64 */
            error_count: number | null;
            /** Format: double */
            p50_latency_ms: number | null;
            /** Format: double */
            p95_latency_ms: number | null;
            /** Format: double */
            p99_latency_ms: number | null;
            /** Format: double */
            qps: number | null;
            /** Format: int64 */
            target_connections: number;
            /** Format: int64 */
            total_queries: number;
        };
        PendingRefresh: {
            dynamic_table: string;
            /** Format: date-time */
            next_refresh_due: string | null;
            /** Format: int64 */
            priority: number;
            subtask: string;
        };
        PercentileError: {
            /** Format: double */
            error_ms: number;
            /** Format: double */
            measured_ms: number;
            /** Format: double */
            percentile: number;
            /** Format: double */
            target_ms: number;
        };
        Plan: {
            adapter: components["schemas"]["PluginRef"];
            burst?: string;
            driver: string;
            error_classes?: {
                [key: string]: string;
            };
            housekeeping_warehouse?: string;
            /** Format: int64 */
            key_slots: number;
            lacks?: string[] | null;
            least_cost?: components["schemas"]["LeastCost"];
            pools?: components["schemas"]["Pool"][] | null;
            prepared?: boolean;
            restore?: string[] | null;
            session?: string[] | null;
            statements: components["schemas"]["Statement"][] | null;
            tables: components["schemas"]["Table"][] | null;
            warehouse?: string;
            workload: components["schemas"]["PluginRef"];
        };
        PluginEntry: {
            abi: string;
            bundled: boolean;
            default: boolean;
            enabled: boolean;
            /** Format: date-time */
            enabled_at: string | null;
            enabled_by?: string;
            exports: string[] | null;
            imports: string[] | null;
            /** @enum {string} */
            kind: "workload" | "adapter";
            live_runs: components["schemas"]["PluginUse"][] | null;
            manifest: components["schemas"]["Manifest"];
            name: string;
            /** @enum {string} */
            origin: "bundled" | "uploaded" | "command_line";
            problem?: string;
            sha256: string;
            /** Format: int64 */
            size_bytes: number;
            /** @enum {string} */
            state: "enabled" | "disabled" | "damaged";
            templates: components["schemas"]["PluginUse"][] | null;
            /** Format: date-time */
            uploaded_at: string | null;
            uploaded_by?: string;
            version: string;
        };
        PluginList: {
            plugins: components["schemas"]["PluginEntry"][] | null;
        };
        PluginRef: {
            /** @enum {string} */
            kind: "workload" | "adapter";
            name: string;
            sha256: string;
            version: string;
        };
        PluginStatement: {
            bind_order?: {
                [key: string]: number[] | null;
            };
            binds?: components["schemas"]["Bind"][] | null;
            columns?: string[] | null;
            hint?: string;
            id: string;
            /** @enum {string} */
            kind: "POINT_LOOKUP" | "RANGE_SCAN" | "INSERT" | "UPDATE" | "DELETE" | "GENERIC_SQL" | "TRANSACTION";
            /** Format: int64 */
            limit?: number;
            no_rows_hint?: string;
            note?: string;
            param?: string;
            sql?: {
                [key: string]: string;
            };
            table?: string;
            transaction?: string;
            writes?: boolean;
        };
        PluginUse: {
            id: string;
            name: string;
        };
        Point: {
            /** Format: int64 */
            active_connections: number;
            /** Format: double */
            avg_latency_ms: number | null;
            /** Format: double */
            cpu_pct: number;
            /** Format: double */
            dropped_per_sec: number;
            /** Format: double */
            elapsed_seconds: number;
            /** Format: int64 */
            error_count: number;
            errors_by_class: {
                [key: string]: number;
            } | null;
            /** Format: double */
            errors_per_sec: number;
            histogram: components["schemas"]["HistogramData"] | null;
            /** Format: double */
            host_cpu_pct: number;
            /** Format: double */
            host_memory_pct: number;
            /** Format: int64 */
            in_flight: number;
            latency_split: components["schemas"]["SplitMs"] | null;
            /** Format: double */
            max_latency_ms: number | null;
            /** Format: double */
            memory_pct: number;
            /** Format: double */
            p50_latency_ms: number | null;
            /** Format: double */
            p95_latency_ms: number | null;
            /** Format: double */
            p99_latency_ms: number | null;
            /** @enum {string} */
            phase: "PREPARING" | "WARMUP" | "MEASUREMENT" | "COOLDOWN" | "PROCESSING" | "";
            /** Format: double */
            qps: number;
            qps_by_kind: {
                [key: string]: number;
            } | null;
            /** Format: double */
            reads_per_sec: number;
            schedule_lag: components["schemas"]["Latency"];
            service: components["schemas"]["Latency"];
            /** Format: int64 */
            target_connections: number;
            /** Format: double */
            target_qps: number | null;
            /** Format: date-time */
            timestamp: string;
            /** Format: int64 */
            total_queries: number;
            /** Format: int64 */
            waiting: number;
            /** Format: double */
            writes_per_sec: number;
        };
        Pool: {
            columns: string[] | null;
            free?: components["schemas"]["FreeRows"];
            keys?: components["schemas"]["PackedKeys"];
            rows: (unknown[] | null)[] | null;
            table: string;
            values?: boolean;
        };
        Preflight: {
            checks: components["schemas"]["CheckResult"][] | null;
            creates: components["schemas"]["PreflightTable"][] | null;
            ok: boolean;
            plan: components["schemas"]["Plan"] | null;
            server: components["schemas"]["PreflightInfo"] | null;
            targets?: components["schemas"]["TargetPreflight"][] | null;
            untried?: boolean;
            writes: components["schemas"]["Written"][] | null;
        };
        PreflightInfo: {
            database: string;
            emulated: boolean;
            local: boolean;
            /** Format: int64 */
            max_connections: number;
            /** Format: double */
            round_trip_ms: number;
            simulated: boolean;
            user: string;
            version: string;
        };
        PreflightInputBody: {
            /** @description Let the run write to tables that Loadstone did not make, as target.allow_writes in the scenario does. */
            allow_writes?: boolean;
            /** @description On production, what the run would write is tried, and undone, only when its connections are named here. */
            confirm_production?: string | string[];
            /** @description or a scenario as JSON. */
            scenario?: {
                [key: string]: unknown;
            };
            /** @description Fields to replace, by path: {"workload.duration_seconds": 60}. Text is read as YAML, as on the command line. */
            set?: {
                [key: string]: unknown;
            };
            /** @description or a template's text in YAML or JSON, */
            source?: string;
            /** @description Ignored; accepted so that the body of POST /api/runs can be sent as it is. */
            start?: boolean;
            /** @description A saved template, by its id … */
            template_id?: string;
            /** @description … or by its name, */
            template_name?: string;
            /** @description Whether what the run would write is tried, and undone. Yes when left out. */
            trial?: boolean;
        };
        PreflightTable: {
            ddl: string[] | null;
            drops: boolean;
            name: string;
            /** Format: int64 */
            rows: number;
            target?: string;
        };
        Prepare: {
            /** @enum {string} */
            if_exists: "use" | "recreate" | "fail";
            /** @enum {string} */
            load?: "auto" | "copy";
            /** Format: int64 */
            rows?: number;
        };
        PrepareProgress: {
            message: string;
            /** Format: double */
            remaining_seconds: number | null;
            /** Format: int64 */
            rows_done: number;
            /** Format: double */
            rows_per_second: number;
            /** Format: int64 */
            rows_total: number;
            step: string;
        };
        Preview: {
            /**
             * Format: int64
             * @description Runs that stay, and whose single executions go.
             */
            deleted_executions: number;
            /**
             * Format: int64
             * @description Runs that go whole.
             */
            deleted_runs: number;
            /**
             * Format: int64
             * @description All runs that are over.
             */
            ended_runs: number;
            /**
             * Format: int64
             * @description What single executions take now.
             */
            executions_bytes: number;
            /** Format: int64 */
            executions_bytes_after: number;
            /** @description Those that go first, 100 at most. */
            first: components["schemas"]["Victim"][];
            /** Format: int64 */
            freed_bytes: number;
            /** @description Runs that would go but for what keeps them. */
            kept: components["schemas"]["KeptRuns"][];
            /**
             * Format: int64
             * @description By how much they are above the budget then, because pinned and young runs stay.
             */
            over_budget_bytes: number;
        };
        PriceList: {
            /** @description The list that comes with Loadstone. */
            built_in: string;
            /**
             * Format: double
             * @description Of one credit, in the currency.
             */
            credit_price: number;
            currency: string;
            /** @description Its path on the server; empty of one that is in no file. */
            file: string;
            /**
             * @description flag is the file that --prices names, saved what was saved here, file prices.yaml of the data directory.
             * @enum {string}
             */
            from: "flag" | "saved" | "file" | "built_in";
            /** @description Why what was saved is not used; empty where nothing is wrong. */
            problem: string;
            /** @description The list, YAML. */
            text: string;
            /** Format: date-time */
            updated_at: string | null;
            updated_by: string;
            /**
             * Format: int64
             * @description Of what was saved, 0 before anything was.
             */
            version: number;
            warehouses: components["schemas"]["WarehousePrice"][];
        };
        Problem: {
            /**
             * @description A stable code that programs may branch on.
             * @example not_found
             */
            code: string;
            /** @description One sentence that says what is wrong. */
            detail: string;
            /** @description The fields that are wrong, each with its path in the document. */
            errors?: components["schemas"]["FieldError"][] | null;
            /** @description What to do about it. */
            hint?: string;
            /** @description A URN that names this one occurrence; the server's log has it too. */
            instance?: string;
            /** @description The id of the request in the server's log. */
            request_id?: string;
            /**
             * Format: int64
             * @description The HTTP status.
             */
            status: number;
            /** @description The HTTP status in words. */
            title: string;
            /**
             * @description A URN made of the code.
             * @example urn:loadstone:problem:not_found
             */
            type: string;
        };
        QueryAnswer: {
            columns: components["schemas"]["QueryColumn"][];
            /** Format: double */
            elapsed_ms: number;
            /** @description Values are null, true or false, numbers, JSON of json columns, and text for all else. */
            rows: (unknown[] | null)[];
            /** @description There were more rows than were asked for, or than an answer holds. */
            truncated: boolean;
        };
        QueryCancel: {
            query_id: string;
        };
        QueryCatalog: {
            relations: components["schemas"]["QueryRelation"][];
        };
        QueryColumn: {
            name: string;
            /** @description As the database names it. */
            type: string;
        };
        QueryExport: {
            /** @enum {string} */
            format: "csv" | "json" | "parquet";
            /**
             * Format: int64
             * @default 100000
             */
            max_rows: number;
            sql: string;
        };
        QueryLogin: {
            /** @description Shown once. */
            readonly dsn: string;
            name: string;
        };
        QueryLoginInput: {
            /** @description Of the login, without its prefix query_. */
            name: string;
            /** @description Gives a login that is there another password; without it that is 409. */
            new_password?: boolean;
        };
        QueryLoginList: {
            logins: components["schemas"]["KnownQueryLogin"][];
        };
        QueryQuestion: {
            /**
             * Format: int64
             * @default 1000
             */
            max_rows: number;
            /** @description A name of the caller's, by which it can be cancelled. */
            query_id?: string;
            /** @description One statement that reads. */
            sql: string;
        };
        QueryRelation: {
            columns: components["schemas"]["QueryColumn"][];
            name: string;
            /** @enum {string} */
            schema: "tables" | "rollup";
        };
        Ready: {
            checks: components["schemas"]["ReadyChecks"];
            /** @enum {string} */
            status: "ready";
        };
        ReadyChecks: {
            /** @enum {string} */
            control_store: "ok";
            /**
             * Format: int64
             * @description Nodes that take new run workers now; 0 where that check is left out, or runs wait for nodes.
             */
            nodes: number;
            /**
             * @description Whether results can be stored.
             * @enum {string}
             */
            results: "ok" | "excluded";
        };
        RecordRead: {
            /** @description False during the run, until its record has been fetched, and when a part of it is lost. */
            complete: boolean;
            /** Format: double */
            elapsed_ms: number;
            /** Format: int64 */
            parts_count: number;
            /**
             * Format: int64
             * @description Rows of the parts, statements inside transactions and the warm-up included.
             */
            rows_count: number;
            /** Format: int64 */
            rows_read_count: number;
        };
        RecoveryCodes: {
            recovery_codes: string[];
        };
        RefreshClaim: {
            /** Format: date-time */
            claimed_at: string | null;
            dynamic_table: string;
            /** Format: int64 */
            epoch: number;
            /** Format: date-time */
            expires_at: string | null;
            /** Format: date-time */
            heartbeat_at: string | null;
            subtask: string;
            worker_id: string;
        };
        RefreshHistory: {
            refreshes: components["schemas"]["RefreshRecord"][];
        };
        RefreshRecord: {
            /** Format: int64 */
            byte_count: number;
            dynamic_table: string;
            /** Format: date-time */
            ended_at: string | null;
            /** Format: int64 */
            epoch: number;
            error: string;
            /**
             * Format: double
             * @description How old the oldest change was that it brought in; null when there was none.
             */
            lag_seconds: number | null;
            note: string;
            /** @enum {string} */
            refresh_mode: "" | "FULL" | "INCREMENTAL";
            /** Format: int64 */
            row_count: number;
            /** Format: int64 */
            seq: number;
            /** Format: date-time */
            started_at: string | null;
            subtask: string;
            worker_id: string;
        };
        RefreshWorker: {
            host: string;
            /** @description The kinds of tables that it refreshes. */
            kinds: string[];
            /** @enum {string} */
            role: "SERVER" | "NODE";
            /** Format: date-time */
            seen_at: string | null;
            /**
             * Format: int64
             * @description How many refreshes it carries out at a time.
             */
            slots: number;
            /** @description Why it takes nothing now; empty when it does. */
            waits_for: string;
            /** @description As its claims have it. */
            worker_id: string;
        };
        RelationCatalog: {
            relations: components["schemas"]["CatalogRelation"][] | null;
            truncated: boolean;
        };
        Resources: {
            /** Format: double */
            cpu_pct: number;
            /** Format: double */
            gc_pause_max_ms: number;
            /** Format: int64 */
            goroutines: number;
            /** Format: double */
            host_cpu_pct: number;
            /** Format: double */
            host_memory_pct: number;
            /** Format: int64 */
            memory_bytes: number;
            /** Format: double */
            memory_pct: number;
            /** Format: double */
            stood_still_ms: number;
        };
        Retention: {
            /**
             * Format: double
             * @description What single executions may take altogether, in units of 10^9 bytes: above it those of the oldest runs are deleted; 0 is no bound.
             */
            executions_budget_gb: number;
            /**
             * Format: int64
             * @description The single executions of runs that ended earlier are deleted, and their figures stay; 0 keeps them.
             */
            keep_executions_days: number;
            /**
             * Format: int64
             * @description Runs that ended earlier are deleted; 0 keeps them.
             */
            keep_runs_days: number;
            /** @description Runs with one of these tags stay; * is any tag. */
            keep_tags: string[];
            /** @description The last time that there was something to delete, on any server; null before. */
            last_pass: components["schemas"]["Pass"] | null;
            /** @description Files of deleted runs that are still to be removed, by place. */
            leftovers: components["schemas"]["LeftPlace"][];
            /** @description False keeps everything, whatever the rest says. */
            on: boolean;
            /**
             * Format: int64
             * @description By how much executions are above the budget, because pinned and young runs stay; of the last look, on any server.
             */
            over_budget_bytes: number;
            /**
             * Format: date-time
             * @description Since when they are; null while they are not.
             */
            over_budget_since: string | null;
            /** Format: date-time */
            updated_at: string | null;
            updated_by?: string;
            /**
             * Format: int64
             * @description 0 before anything was saved; to be sent back with a change.
             */
            version: number;
        };
        Retry: {
            /** Format: double */
            backoff_ms: number;
            classes: string[] | null;
            /** Format: int64 */
            max: number;
        };
        Rule: {
            /** @enum {string} */
            do: "stop" | "webhook";
            name: string;
            url?: string;
            url_sealed?: string;
            when: string;
        };
        Rules: {
            /**
             * Format: double
             * @description What single executions may take altogether, in units of 10^9 bytes: above it those of the oldest runs are deleted; 0 is no bound.
             */
            executions_budget_gb: number;
            /**
             * Format: int64
             * @description The single executions of runs that ended earlier are deleted, and their figures stay; 0 keeps them.
             */
            keep_executions_days: number;
            /**
             * Format: int64
             * @description Runs that ended earlier are deleted; 0 keeps them.
             */
            keep_runs_days: number;
            /** @description Runs with one of these tags stay; * is any tag. */
            keep_tags: string[];
            /** @description False keeps everything, whatever the rest says. */
            on: boolean;
        };
        RuleState: {
            /** @enum {string} */
            do: "stop" | "webhook";
            failure: string;
            /**
             * Format: date-time
             * @description When it gave the last one; null before.
             */
            last_at: string | null;
            /** @description The last one, in words. */
            last_row: string;
            name: string;
            /**
             * Format: int64
             * @description Rows that it has read.
             */
            rows_in: number;
            /**
             * Format: int64
             * @description Rows that it gave.
             */
            rows_out: number;
            /** @enum {string} */
            status: "RUNNING" | "TRIGGERED" | "ENDED" | "FAILED";
        };
        Run: {
            cancellation_reason: string | null;
            /** Format: date-time */
            created_at: string | null;
            created_by?: string;
            /** @description The user who made it; empty where that was a process, or is not known. */
            created_by_id?: string;
            /** Format: double */
            current_qps: number;
            /** Format: date-time */
            end_time: string | null;
            /** Format: int64 */
            error_count: number;
            /**
             * Format: date-time
             * @description When its single executions were deleted; null where they were not. Its figures, charts and log stay.
             */
            executions_deleted_at: string | null;
            /** @description retention, or a user's name. */
            executions_deleted_by?: string;
            matrix_id?: string;
            /** Format: int64 */
            matrix_index?: number;
            matrix_label?: string;
            /** Format: date-time */
            measurement_end_time: string | null;
            /** Format: int64 */
            owner_epoch: number;
            /** @enum {string} */
            phase: "PREPARING" | "WARMUP" | "MEASUREMENT" | "COOLDOWN" | "PROCESSING" | "";
            rules?: components["schemas"]["RuleState"][] | null;
            run_id: string;
            scenario_config: components["schemas"]["Scenario"];
            /** Format: date-time */
            start_time: string | null;
            /** @enum {string} */
            status: "PREPARED" | "RUNNING" | "STOPPING" | "CANCELLING" | "COMPLETED" | "FAILED" | "CANCELLED";
            /** @enum {string} */
            stop_reason?: "duration_elapsed" | "user_requested" | "guardrail" | "worker_failure" | "setup_failure";
            template_id?: string;
            test_id: string;
            test_name: string;
            /** Format: int64 */
            total_ops: number;
            /** Format: int64 */
            total_workers_expected: number;
            /** Format: date-time */
            updated_at: string | null;
            waiting?: components["schemas"]["Waiting"];
            /** Format: date-time */
            warmup_end_time: string | null;
            /** Format: date-time */
            warmup_start_time: string | null;
            worker_targets: {
                [key: string]: components["schemas"]["WorkerTarget"];
            } | null;
            /** Format: int64 */
            workers_active: number;
            /** Format: int64 */
            workers_completed: number;
            /** Format: int64 */
            workers_registered: number;
        };
        RunAccount: {
            connection: string;
            /** Format: int64 */
            executions: number;
            /** Format: date-time */
            noted_at: string | null;
            /** @description DATABASE.SCHEMA of the export; empty if the account was not reached. */
            place: string;
            /** @description What is missing and why, or why the attempt failed. */
            problem: string;
            /** @enum {string} */
            status: "DONE" | "FAILED";
            views: string[];
        };
        RunCreateBody: {
            /** @description Let the run write to tables that Loadstone did not make, as target.allow_writes in the scenario does. */
            allow_writes?: boolean;
            /** @description The names of the production connections that this loads, typed by whoever starts it: one, or a list. */
            confirm_production?: string | string[];
            /** @description or a scenario as JSON. */
            scenario?: {
                [key: string]: unknown;
            };
            /** @description Fields to replace, by path: {"workload.duration_seconds": 60}. Text is read as YAML, as on the command line. */
            set?: {
                [key: string]: unknown;
            };
            /** @description or a template's text in YAML or JSON, */
            source?: string;
            /** @description Start it at once. */
            start?: boolean;
            /** @description A saved template, by its id … */
            template_id?: string;
            /** @description … or by its name, */
            template_name?: string;
        };
        RunDetail: {
            artifacts: components["schemas"]["Artifact"][] | null;
            /** Format: int64 */
            artifacts_total: number;
            cancellation_reason: string | null;
            /** Format: date-time */
            created_at: string | null;
            created_by?: string;
            /** @description The user who made it; empty where that was a process, or is not known. */
            created_by_id?: string;
            /** Format: double */
            current_qps: number;
            emulated: boolean;
            /** Format: date-time */
            end_time: string | null;
            enrichment: components["schemas"]["Enrichment"];
            /** Format: int64 */
            error_count: number;
            events: components["schemas"]["Event"][] | null;
            /** Format: int64 */
            events_total: number;
            /**
             * Format: date-time
             * @description When its single executions were deleted; null where they were not. Its figures, charts and log stay.
             */
            executions_deleted_at: string | null;
            /** @description retention, or a user's name. */
            executions_deleted_by?: string;
            find_max: components["schemas"]["FindMaxState"] | null;
            live: components["schemas"]["Payload"] | null;
            load_changes: components["schemas"]["Event"][] | null;
            matrix_id?: string;
            /** Format: int64 */
            matrix_index?: number;
            matrix_label?: string;
            /** Format: date-time */
            measurement_end_time: string | null;
            /** Format: int64 */
            owner_epoch: number;
            /** @enum {string} */
            phase: "PREPARING" | "WARMUP" | "MEASUREMENT" | "COOLDOWN" | "PROCESSING" | "";
            plan: components["schemas"]["Plan"] | null;
            rules?: components["schemas"]["RuleState"][] | null;
            run_id: string;
            scenario_config: components["schemas"]["Scenario"];
            simulated: boolean;
            /** Format: date-time */
            start_time: string | null;
            /** @enum {string} */
            status: "PREPARED" | "RUNNING" | "STOPPING" | "CANCELLING" | "COMPLETED" | "FAILED" | "CANCELLED";
            /** @enum {string} */
            stop_reason?: "duration_elapsed" | "user_requested" | "guardrail" | "worker_failure" | "setup_failure";
            summary: components["schemas"]["Summary"] | null;
            template_id?: string;
            test_id: string;
            test_name: string;
            /** Format: int64 */
            total_ops: number;
            /** Format: int64 */
            total_workers_expected: number;
            /** Format: date-time */
            updated_at: string | null;
            waiting?: components["schemas"]["Waiting"];
            warehouse: components["schemas"]["Warehouse"] | null;
            /** Format: date-time */
            warmup_end_time: string | null;
            /** Format: date-time */
            warmup_start_time: string | null;
            worker_targets: {
                [key: string]: components["schemas"]["WorkerTarget"];
            } | null;
            workers: components["schemas"]["RunResult"][] | null;
            /** Format: int64 */
            workers_active: number;
            /** Format: int64 */
            workers_completed: number;
            /** Format: int64 */
            workers_registered: number;
        };
        RunExport: {
            account: components["schemas"]["RunAccount"] | null;
            record: components["schemas"]["RunRecord"] | null;
        };
        RunFromTemplateBody: {
            /** @description The names of the production connections that this loads, typed by whoever starts it: one, or a list. */
            confirm_production?: string | string[];
            set?: {
                [key: string]: unknown;
            };
            start?: boolean;
        };
        RunList: {
            next_cursor?: string;
            runs: components["schemas"]["RunRow"][] | null;
            /** Format: int64 */
            total: number;
        };
        RunNote: {
            run_id: string;
            text: string;
            /** Format: date-time */
            updated_at: string | null;
            updated_by: string;
            /**
             * Format: int64
             * @description Rises with each save; 0 where nothing was written.
             */
            version: number;
        };
        RunRecord: {
            /**
             * Format: int64
             * @description Number of parts of the record.
             */
            parts: number;
            /** @description One sentence per part that could not be read. */
            problems: string[];
        };
        RunResult: {
            /** Format: date-time */
            created_at: string | null;
            /** Format: date-time */
            end_time: string | null;
            enrichment?: components["schemas"]["Enrichment"];
            /** @enum {string} */
            enrichment_status: "PENDING" | "RUNNING" | "COMPLETED" | "PARTIAL" | "SKIPPED" | "FAILED" | "";
            environment: components["schemas"]["Environment"] | null;
            failure_reason?: string;
            figures: components["schemas"]["Figures"] | null;
            find_max_result: components["schemas"]["FindMaxResult"] | null;
            passed: boolean | null;
            plan: components["schemas"]["Plan"] | null;
            run_id: string;
            /** Format: date-time */
            start_time: string | null;
            /** @enum {string} */
            status: "PREPARED" | "RUNNING" | "STOPPING" | "CANCELLING" | "COMPLETED" | "FAILED" | "CANCELLED";
            test_id: string;
            test_name: string;
            thresholds: components["schemas"]["ThresholdResult"][] | null;
            /** Format: date-time */
            updated_at: string | null;
            validity: components["schemas"]["Validity"] | null;
            /** Format: int64 */
            worker_group_id?: number;
            worker_id?: string;
        };
        RunRow: {
            cancellation_reason: string | null;
            /** Format: date-time */
            created_at: string | null;
            created_by?: string;
            /** @description The user who made it; empty where that was a process, or is not known. */
            created_by_id?: string;
            /** Format: double */
            current_qps: number;
            emulated: boolean;
            /** Format: date-time */
            end_time: string | null;
            /** Format: int64 */
            error_count: number;
            /** Format: double */
            error_rate: number | null;
            /**
             * Format: date-time
             * @description When its single executions were deleted; null where they were not. Its figures, charts and log stay.
             */
            executions_deleted_at: string | null;
            /** @description retention, or a user's name. */
            executions_deleted_by?: string;
            /** Format: int64 */
            failed_thresholds: number;
            matrix_id?: string;
            /** Format: int64 */
            matrix_index?: number;
            matrix_label?: string;
            /** Format: double */
            measured_seconds: number | null;
            /** Format: date-time */
            measurement_end_time: string | null;
            /** Format: int64 */
            owner_epoch: number;
            /** Format: double */
            p50_ms: number | null;
            /** Format: double */
            p95_ms: number | null;
            /** Format: double */
            p99_ms: number | null;
            passed: boolean | null;
            /** @enum {string} */
            phase: "PREPARING" | "WARMUP" | "MEASUREMENT" | "COOLDOWN" | "PROCESSING" | "";
            /** Format: double */
            qps: number | null;
            rules?: components["schemas"]["RuleState"][] | null;
            run_id: string;
            scenario_config: components["schemas"]["Scenario"];
            simulated: boolean;
            /** Format: date-time */
            start_time: string | null;
            /** @enum {string} */
            status: "PREPARED" | "RUNNING" | "STOPPING" | "CANCELLING" | "COMPLETED" | "FAILED" | "CANCELLED";
            /** @enum {string} */
            stop_reason?: "duration_elapsed" | "user_requested" | "guardrail" | "worker_failure" | "setup_failure";
            template_id?: string;
            test_id: string;
            test_name: string;
            /** Format: int64 */
            total_ops: number;
            /** Format: int64 */
            total_workers_expected: number;
            /** Format: date-time */
            updated_at: string | null;
            /** @enum {string|null} */
            validity: "VALID" | "DEGRADED" | "NONE" | null;
            waiting?: components["schemas"]["Waiting"];
            /** Format: date-time */
            warmup_end_time: string | null;
            /** Format: date-time */
            warmup_start_time: string | null;
            worker_targets: {
                [key: string]: components["schemas"]["WorkerTarget"];
            } | null;
            /** Format: int64 */
            workers_active: number;
            /** Format: int64 */
            workers_completed: number;
            /** Format: int64 */
            workers_registered: number;
        };
        RunView: {
            /** Format: date-time */
            created_at: string | null;
            name: string;
            owner: string;
            /** @description Whose it is; empty when that user is gone. */
            owner_id: string;
            /** @description Filters, order, columns and trend, as they stand in the address of the page Runs. */
            query: string;
            /** @description Whether everybody sees it. */
            shared: boolean;
            /** Format: date-time */
            updated_at: string | null;
            updated_by: string;
            /** Format: int64 */
            version: number;
            view_id: string;
        };
        RunViewChange: {
            name: string;
            /** @description As it stands in the address of the page Runs: status, search, template, range, tag, sort, columns, trend, figure. */
            query?: string;
            /**
             * Format: int64
             * @description The version that was edited; 409 if somebody saved another since; the answer names the user and the time.
             */
            version: number;
        };
        RunViewInput: {
            name: string;
            /** @description As it stands in the address of the page Runs: status, search, template, range, tag, sort, columns, trend, figure. */
            query?: string;
        };
        RunViewList: {
            /**
             * Format: int64
             * @description How many a user may keep.
             */
            most: number;
            views: components["schemas"]["RunView"][];
        };
        RunViewShared: {
            /** @description Whether everybody sees it. */
            shared: boolean;
            /** Format: int64 */
            version: number;
        };
        SampleList: {
            samples: components["schemas"]["GeneratorSample"][];
        };
        SamplesInputBody: {
            /** @description Parameters as those of the workload sql: a name, a generator and what it takes. */
            binds: {
                [key: string]: unknown;
            }[] | null;
        };
        SavedQuery: {
            /** @description How the page draws its answer, as it stands in the page's address. */
            chart: string;
            /** Format: date-time */
            created_at: string | null;
            created_by: string;
            name: string;
            sql: string;
            /** Format: date-time */
            updated_at: string | null;
            updated_by: string;
            /**
             * Format: int64
             * @description Rises with each change.
             */
            version: number;
        };
        SavedQueryInput: {
            chart?: string;
            /** @description Another name for the query of that version; left out, it keeps its own. */
            name?: string;
            sql: string;
            /**
             * Format: int64
             * @description The version that was edited, 0 for a new query; 409 when another has been saved since.
             */
            version?: number;
        };
        SavedQueryList: {
            queries: components["schemas"]["SavedQuery"][];
        };
        SaveInputBody: {
            hooks: components["schemas"]["GivenHook"][];
            /** Format: int64 */
            version: number;
        };
        Scaling: {
            /** Format: int64 */
            max_workers?: number;
            /** Format: int64 */
            min_workers?: number;
            /** @enum {string} */
            mode: "FIXED" | "BOUNDED" | "AUTO";
            /** Format: int64 */
            per_worker_capacity: number;
            /** Format: int64 */
            worker_count: number;
            /** Format: int64 */
            worker_group_count?: number;
        };
        Scenario: {
            description?: string;
            export?: string;
            find_max: components["schemas"]["FindMax"];
            guardrails: components["schemas"]["Guardrails"];
            matrix?: components["schemas"]["Matrix"];
            name: string;
            rules?: components["schemas"]["Rule"][] | null;
            scaling: components["schemas"]["Scaling"];
            tags?: {
                [key: string]: string;
            };
            target?: components["schemas"]["Target"];
            template_id?: string;
            template_name?: string;
            thresholds?: string[] | null;
            workload: components["schemas"]["Workload"];
        };
        Schedule: {
            /** @description The production connections whose load the owner has confirmed, by name. */
            confirmed_production?: string[] | null;
            /** Format: date-time */
            created_at: string | null;
            /** @description Five fields, or a name such as @daily. */
            cron: string;
            /** @description The newest start; null before the first. */
            last: components["schemas"]["ScheduledStart"] | null;
            name: string;
            /**
             * Format: date-time
             * @description When the next run is due; null while the schedule is paused or suspended.
             */
            next_due: string | null;
            /** @description The user in whose name runs start: whoever saved the schedule last. */
            owner: string;
            owner_id: string;
            paused: boolean;
            schedule_id: string;
            /** @description Why no run starts; whoever saves the schedule resumes it. */
            suspended_reason?: string;
            template_id: string;
            template_name: string;
            /** @description A name of the IANA database. */
            time_zone: string;
            /** Format: date-time */
            updated_at: string | null;
            updated_by: string;
            /** Format: int64 */
            version: number;
        };
        ScheduleChange: {
            /** @description The names of the production connections that this loads, typed by whoever starts it: one, or a list. */
            confirm_production?: string | string[];
            /** @description Minute, hour, day of the month, month and day of the week, or a name such as @daily. */
            cron: string;
            name: string;
            paused?: boolean;
            /** @description The template, by its id … */
            template_id?: string;
            /** @description … or by its name. */
            template_name?: string;
            /** @description A name of the IANA database, such as Europe/Berlin. UTC when left out. */
            time_zone?: string;
            /**
             * Format: int64
             * @description The version that was edited; 409 if somebody saved another since; the answer names the user and the time.
             */
            version: number;
        };
        ScheduledStart: {
            /**
             * Format: date-time
             * @description When it was due; of several that were missed, the first.
             */
            due_at: string | null;
            matrix_id?: string;
            /**
             * Format: int64
             * @description How many starts were missed.
             */
            missed?: number;
            /** Format: date-time */
            noted_at: string | null;
            /** @enum {string} */
            outcome: "STARTING" | "STARTED" | "SKIPPED" | "MISSED" | "FAILED";
            /** @description Why no run started. */
            reason?: string;
            run_id?: string;
            schedule_id: string;
        };
        ScheduledStartList: {
            starts: components["schemas"]["ScheduledStart"][];
        };
        ScheduleInput: {
            /** @description The names of the production connections that this loads, typed by whoever starts it: one, or a list. */
            confirm_production?: string | string[];
            /** @description Minute, hour, day of the month, month and day of the week, or a name such as @daily. */
            cron: string;
            name: string;
            paused?: boolean;
            /** @description The template, by its id … */
            template_id?: string;
            /** @description … or by its name. */
            template_name?: string;
            /** @description A name of the IANA database, such as Europe/Berlin. UTC when left out. */
            time_zone?: string;
        };
        ScheduleList: {
            schedules: components["schemas"]["Schedule"][];
        };
        ScheduleTimes: {
            /** @description In UTC, the soonest first. */
            times: (string | null)[];
        };
        SeenError: {
            /** Format: int64 */
            count: number;
            error_class: string;
            error_code: string;
            error_message: string;
            /** Format: date-time */
            first_at: string | null;
            /** Format: date-time */
            last_at: string | null;
        };
        Sends: {
            ddl?: string[] | null;
            query?: string[] | null;
            session?: string[] | null;
            statements?: string[] | null;
        };
        Series: {
            points: components["schemas"]["Point"][] | components["schemas"]["WorkerPoint"][];
            /**
             * Format: double
             * @description How many seconds a point stands for. Of several, rates, P50 and mean are their means, P95, P99 and maximum the highest, the histogram is null, and the rest is that of the last second.
             */
            resolution_seconds: number;
        };
        ServerEvent: {
            /** Format: date-time */
            at: string | null;
            /** @enum {string} */
            kind: "checkpoint" | "vacuum" | "plan" | "setting" | "restart" | "reset";
            statement_id?: string;
            text: string;
        };
        ServerFigures: {
            client_ms: components["schemas"]["LatencyMs"];
            /** Format: int64 */
            matched: number;
            server_ms: components["schemas"]["LatencyMs"];
            split: components["schemas"]["ServerSplitMs"];
        };
        ServerIdentity: {
            address: string;
            /** Format: date-time */
            at: string | null;
            role: string;
            /** Format: date-time */
            started_at: string | null;
            system_identifier?: string;
            /** Format: int64 */
            timeline?: number;
            version: string;
        };
        ServerInfo: {
            database: string;
            emulated: boolean;
            lacks?: string[] | null;
            local: boolean;
            /** Format: int64 */
            max_connections: number;
            notes?: string[] | null;
            pooled?: boolean;
            simulated: boolean;
            user: string;
            version: string;
        };
        ServerSecond: {
            /** Format: date-time */
            at: string | null;
            /** Format: double */
            elapsed_seconds: number;
            /** Format: double */
            in_flight: number | null;
            /** Format: int64 */
            looks: number;
            others: {
                [key: string]: number;
            } | null;
            ours: {
                [key: string]: number;
            } | null;
            /** Format: double */
            seconds: number;
            slow?: boolean;
        };
        ServerSplitMs: {
            /** Format: double */
            blocked_ms: number;
            /** Format: double */
            compilation_ms: number;
            /** Format: double */
            execution_ms: number;
            /** Format: double */
            other_ms: number;
            /** Format: double */
            overhead_ms: number;
            /** Format: double */
            queued_ms: number;
            /** Format: double */
            queued_overload_ms: number;
            /** Format: double */
            queued_provisioning_ms: number;
            /** Format: double */
            queued_repair_ms: number;
        };
        ServerTime: {
            classes: {
                [key: string]: number;
            } | null;
            /** Format: double */
            in_flight_seconds: number;
            /** Format: double */
            look_ms: number;
            /** Format: int64 */
            looks: number;
            /** Format: double */
            looks_per_second: number;
            /** Format: double */
            network_seconds: number;
            /** Format: double */
            remainder_pct: number;
            /** Format: double */
            remainder_seconds: number;
            /** Format: int64 */
            seconds: number;
            /** Format: int64 */
            unseen: number;
            /** Format: double */
            waiting_seconds: number;
        };
        ServerView: {
            blockers: components["schemas"]["Blocker"][];
            events: components["schemas"]["ServerEvent"][];
            findings: components["schemas"]["Finding"][];
            live: boolean;
            missing: string[];
            observed: boolean;
            reason?: string;
            seconds: components["schemas"]["ServerSecond"][];
            time: components["schemas"]["ServerTime"] | null;
        };
        Setup: {
            load: string;
            tables: {
                [key: string]: number;
            } | null;
            workload: string;
        };
        Share: {
            /** Format: date-time */
            created_at: string | null;
            created_by: string;
            created_by_id?: string;
            /** Format: date-time */
            expires_at: string | null;
            run_deleted: boolean;
            run_id: string;
            /** @description As it was when the link was made. */
            run_name: string;
            share_id: string;
            /** Format: int64 */
            use_count: number;
            /**
             * Format: date-time
             * @description When it was opened last; null when it never was.
             */
            used_at: string | null;
        };
        ShareInputBody: {
            /**
             * Format: int64
             * @default 7
             */
            expires_in_days: number;
        };
        ShareList: {
            shares: components["schemas"]["Share"][];
        };
        Signed: {
            user: components["schemas"]["User"];
        };
        SignInInputBody: {
            /** @description The second factor: a code of the authenticator app, or a recovery code. 401 with the field code asks for it. */
            code?: string;
            /** @description The one-time token of an invitation, with the password that its user chooses. */
            invitation?: string;
            /** @description A user's name, with its password. */
            name?: string;
            password?: string;
            /** @description The one-time token of a sign-in link; alone. */
            token?: string;
        };
        SLO: {
            /** Format: double */
            error_rate_pct?: number;
            /** Format: double */
            p95_ms?: number;
            /** Format: double */
            p99_ms?: number;
        };
        SlowExecution: {
            /** Format: double */
            app_elapsed_ms: number;
            /** Format: int32 */
            connection_id: number;
            error_class?: string;
            error_message?: string;
            /** @enum {string} */
            kind: "POINT_LOOKUP" | "RANGE_SCAN" | "INSERT" | "UPDATE" | "DELETE" | "GENERIC_SQL" | "TRANSACTION";
            /** Format: int32 */
            rows: number;
            /** Format: int32 */
            seq: number;
            server_query_id: string;
            /** Format: date-time */
            started_at: string | null;
            statement_id: string;
            success: boolean;
            worker_id: string;
        };
        SplitMs: {
            /** Format: double */
            decode_ms: number;
            /** Format: double */
            pool_wait_ms: number;
            /** Format: double */
            round_trip_ms: number;
            /** Format: double */
            schedule_lag_ms: number;
        };
        Stage: {
            /** Format: int64 */
            connections?: number;
            /** Format: double */
            duration_seconds: number;
            /** @enum {string} */
            ramp: "linear" | "step";
            /** Format: double */
            target_qps?: number;
        };
        Stall: {
            /** Format: int64 */
            answered_operations: number;
            /** Format: date-time */
            from: string | null;
            /** Format: int64 */
            missed_operations: number;
            /** Format: double */
            seconds: number;
        };
        StandIn: {
            a: string;
            b: string;
        };
        StartInputBody: {
            /** @description The names of the production connections that this loads, typed by whoever starts it: one, or a list. */
            confirm_production?: string | string[];
        };
        State: {
            enabled: boolean;
            /**
             * Format: date-time
             * @description Null where it is off.
             */
            enabled_at: string | null;
            /**
             * Format: int64
             * @description How many recovery codes were not used.
             */
            recovery_left: number;
        };
        Statement: {
            bind_order?: number[] | null;
            binds: components["schemas"]["Bind"][] | null;
            columns?: string[] | null;
            id: string;
            /** @enum {string} */
            kind: "POINT_LOOKUP" | "RANGE_SCAN" | "INSERT" | "UPDATE" | "DELETE" | "GENERIC_SQL" | "TRANSACTION";
            no_rows_hint?: string;
            sql: string;
            table?: string;
            transaction?: string;
            writes: boolean;
        };
        StatementFigures: {
            /** Format: int64 */
            carried_over?: number;
            /** Format: int64 */
            count: number;
            /** Format: int64 */
            errors: number;
            /** Format: int64 */
            finished_late?: number;
            in_transaction: boolean;
            /** @enum {string} */
            kind: "POINT_LOOKUP" | "RANGE_SCAN" | "INSERT" | "UPDATE" | "DELETE" | "GENERIC_SQL" | "TRANSACTION";
            latency_ms: components["schemas"]["StatementLatencyMs"] | null;
            /** Format: int64 */
            no_rows: number;
            /** Format: double */
            qps: number | null;
            /** Format: int64 */
            retries: number;
            /** Format: int64 */
            rows: number;
            statement_id: string;
        };
        StatementLatencyMs: {
            /** Format: double */
            avg: number;
            /** Format: double */
            max: number;
            /** Format: double */
            p50: number;
            /** Format: double */
            p95: number;
            /** Format: double */
            p99: number;
        };
        StatementResult: {
            columns: string[];
            done?: string;
            rows: (string[] | null)[];
            statement: string;
        };
        StatementResults: {
            results: components["schemas"]["StatementResult"][];
        };
        StatementsInput: {
            /** @description The names of the production connections that this loads, typed by whoever starts it: one, or a list. */
            confirm_production?: string | string[];
            /** @description Where everything is there already as the statements would make it nothing is done, in place of AlreadyExists: loadstone apply asks so. */
            keep_equal?: boolean;
            /** @description Statements, divided by semicolons: all of them are carried out, or none. */
            sql: string;
        };
        StatementTrial: {
            columns: string[] | null;
            /** Format: double */
            elapsed_ms: number;
            executed: boolean;
            explain: string[] | null;
            explain_problem: components["schemas"]["TrialProblem"] | null;
            failed: components["schemas"]["TrialProblem"] | null;
            faults: components["schemas"]["TrialFault"][] | null;
            /** @enum {string} */
            kind: "POINT_LOOKUP" | "RANGE_SCAN" | "INSERT" | "UPDATE" | "DELETE" | "GENERIC_SQL" | "TRANSACTION";
            not_executed?: string;
            notes: string[] | null;
            ok: boolean;
            parameters: components["schemas"]["TrialParameter"][] | null;
            problems: components["schemas"]["TrialProblem"][] | null;
            /** Format: int64 */
            row_count: number;
            rows: ((string | null)[] | null)[] | null;
            sql: string;
            statement: string;
            writes: boolean;
        };
        Stop: {
            /** Format: double */
            drain_seconds?: number;
        };
        StoppedRun: {
            /** @description Why it could not be asked to stop. */
            error?: string;
            run_id: string;
            run_name?: string;
            /**
             * @description The status after it was asked to stop; it drains first. Empty when that is not known.
             * @enum {string}
             */
            status?: "PREPARED" | "RUNNING" | "STOPPING" | "CANCELLING" | "COMPLETED" | "FAILED" | "CANCELLED";
        };
        StopReport: {
            /** @description The runs of other servers on the control store and those that wait for room: the others read it there within seconds. */
            elsewhere: components["schemas"]["StoppedRun"][];
            /** @description The runs of this server, which were stopped at once. */
            here: components["schemas"]["StoppedRun"][];
            /** @description The matrices that start no further run. */
            matrices: string[];
            /** @description Whether the control store could be asked. If not, runs of other servers go on: stop each server, or ask it for the same. */
            store_answered: boolean;
        };
        StreamAlert: {
            /** Format: date-time */
            at: string | null;
            /** @description Why the webhook failed. */
            failure: string;
            query: string;
            /** Format: int64 */
            query_id: number;
            /** @description The first of its rows, in words. */
            row: string;
            /** Format: int64 */
            rows: number;
            /** @description The run that was stopped. */
            run_id: string;
            /** @description That of the sink: GUARDRAIL or WEBHOOK. */
            type: string;
        };
        StreamCatalog: {
            /** @description The last 200 here, newest first. */
            alerts: components["schemas"]["StreamAlert"][];
            queries: components["schemas"]["StreamQuery"][];
            sinks: components["schemas"]["StreamSink"][];
            sources: components["schemas"]["StreamSource"][];
            workers: components["schemas"]["StreamWorker"][];
        };
        StreamColumn: {
            name: string;
            not_null: boolean;
            type: string;
        };
        StreamCounts: {
            /** Format: int64 */
            ahead: number;
            /** Format: int64 */
            cast: number;
            /** Format: int64 */
            division_by_zero: number;
            /** Format: int64 */
            dropped: number;
            /** Format: int64 */
            in: number;
            /** Format: double */
            in_per_second: number;
            /**
             * Format: double
             * @description How far that is behind the server's clock; null where rows have no time.
             */
            lag_ms: number | null;
            /**
             * Format: date-time
             * @description When rows last went to the sink, within a second.
             */
            last_output: string | null;
            /** Format: int64 */
            late: number;
            /**
             * Format: date-time
             * @description The latest time that a row had; null where rows have none.
             */
            latest_row: string | null;
            /** Format: int64 */
            malformed: number;
            /** Format: int64 */
            out: number;
            /** Format: double */
            out_per_second: number;
            /** Format: int64 */
            overflow: number;
            /** Format: int64 */
            state_bytes: number;
            /** Format: int64 */
            timeless: number;
        };
        StreamFragment: {
            /** Format: int64 */
            attempts: number;
            failure: string;
            host_name: string;
            /** @description Its rows; null where another server owns the query, or nobody. */
            live: components["schemas"]["FragmentCounts"] | null;
            plan: string;
            /** @enum {string} */
            state: "REGISTERED" | "STARTED" | "RUNNING" | "STOPPED" | "TERMINATED" | "FAILED";
        };
        StreamPlace: {
            /** Format: int64 */
            id: number;
            placement: string;
            type: string;
        };
        StreamQuery: {
            /** Format: date-time */
            created_at: string | null;
            created_by: string;
            /** @enum {string} */
            desired_state: "RUNNING" | "STOPPED" | "SUSPENDED";
            failure: string;
            fragments: components["schemas"]["StreamFragment"][];
            /** @description What became of its rows, also when it has ended; null where another server runs it, or nobody has. */
            live: components["schemas"]["StreamCounts"] | null;
            name: string;
            /** @description Its last rows, where its sink is of the type PRINT. */
            output: string[];
            /** @description The server that runs it. */
            owner: string;
            /** Format: int64 */
            query_id: number;
            /** Format: date-time */
            since: string | null;
            sink: string;
            /** @description The ids of the physical sources that it reads. */
            sources: number[];
            /** @enum {string} */
            state: "PENDING" | "DEPLOYING" | "RUNNING" | "STOPPING" | "STOPPING_STUCK" | "STOPPED" | "TERMINATED" | "TERMINATING" | "FAILED" | "SUSPENDED";
            statement: string;
            /** @description Why its sink takes no rows for the moment; null where it does, and where another server runs it. */
            trouble: components["schemas"]["StreamTrouble"] | null;
            /** @description What a source of it waits for, such as a connection that is made again; empty where none does. */
            waiting: string;
        };
        StreamSink: {
            columns: components["schemas"]["StreamColumn"][];
            name: string;
            placement: string;
            type: string;
        };
        StreamSource: {
            columns: components["schemas"]["StreamColumn"][];
            name: string;
            physical: components["schemas"]["StreamPlace"][];
        };
        StreamTrouble: {
            /**
             * Format: int64
             * @description How many have failed since.
             */
            attempts: number;
            message: string;
            /**
             * Format: date-time
             * @description When the first attempt has failed.
             */
            since: string | null;
        };
        StreamWorker: {
            host_name: string;
            /** Format: int64 */
            slots: number;
            /** @enum {string} */
            state: "ACTIVE" | "DRAINING" | "UNREACHABLE";
            /** Format: int64 */
            used_slots: number;
        };
        Summary: {
            accounting: components["schemas"]["Accounting"];
            beginning?: components["schemas"]["Beginning"];
            by_kind: {
                [key: string]: components["schemas"]["KindFigures"];
            } | null;
            by_load?: components["schemas"]["LoadPart"][] | null;
            by_statement: components["schemas"]["StatementFigures"][] | null;
            cancellation_reason: string | null;
            /** Format: int64 */
            carried_over: number;
            connections: components["schemas"]["ConnectionFigures"] | null;
            coordinated_omission: components["schemas"]["Omission"] | null;
            cost: components["schemas"]["Cost"] | null;
            counts_missing?: boolean;
            counts_only?: boolean;
            /** Format: double */
            covered_seconds: number | null;
            /** Format: double */
            drain_seconds: number;
            /** Format: double */
            duration_seconds: number;
            emulated: boolean;
            /** Format: date-time */
            end_time: string | null;
            environment: components["schemas"]["Environment"];
            errors: components["schemas"]["ErrorFigures"];
            failing?: components["schemas"]["FailingTime"][] | null;
            find_max: components["schemas"]["FindMaxResult"] | null;
            findings?: components["schemas"]["Finding"][] | null;
            /** Format: int64 */
            finished_late: number;
            freezes?: components["schemas"]["Freezes"];
            histogram: components["schemas"]["HistogramBucket"][] | null;
            /** Format: int64 */
            keys_replaced: number;
            latency_ms: components["schemas"]["LatencyMs"] | null;
            latency_split: components["schemas"]["SplitMs"] | null;
            live_percentiles: components["schemas"]["LivePercentile"][] | null;
            /** Format: date-time */
            measured_from: string | null;
            /** Format: date-time */
            measured_to: string | null;
            /** Format: int64 */
            operations: number;
            outages?: components["schemas"]["Outage"][] | null;
            passed: boolean;
            plugins: components["schemas"]["PluginRef"][] | null;
            /** Format: double */
            qps: number | null;
            /** Format: int64 */
            reads: number;
            record_partial?: boolean;
            /** Format: int64 */
            retries: number;
            run_id: string;
            schedule_lag_ms: components["schemas"]["LatencyMs"] | null;
            server_time?: components["schemas"]["ServerTime"];
            service_ms: components["schemas"]["LatencyMs"] | null;
            setup: components["schemas"]["Setup"] | null;
            simulated: boolean;
            slowest: components["schemas"]["SlowExecution"][] | null;
            stalls?: components["schemas"]["Stall"][] | null;
            /** Format: date-time */
            start_time: string | null;
            /** @enum {string} */
            status: "PREPARED" | "RUNNING" | "STOPPING" | "CANCELLING" | "COMPLETED" | "FAILED" | "CANCELLED";
            tags?: {
                [key: string]: string;
            };
            /** Format: double */
            target_qps: number | null;
            test_name: string;
            thresholds: components["schemas"]["ThresholdResult"][] | null;
            transactions: components["schemas"]["TransactionFigures"] | null;
            /** Format: int64 */
            unknown_outcomes?: number;
            /** @enum {string} */
            validity: "VALID" | "DEGRADED" | "NONE";
            validity_detail: components["schemas"]["Validity"];
            verdict: string;
            /** Format: int64 */
            writes: number;
        };
        Supports: {
            clustering: boolean;
            enforced_keys: boolean;
            generates_rows: boolean;
            indexes: boolean;
            instead?: string;
            read_only: boolean;
            reason?: string;
            transactions: boolean;
        };
        Table: {
            columns: components["schemas"]["Column"][] | null;
            constraints?: components["schemas"]["Constraint"][] | null;
            dense: boolean;
            /** Format: int64 */
            dense_max?: number;
            dialect?: string;
            key: string[] | null;
            /** Format: int64 */
            key_max: number | null;
            /** Format: int64 */
            key_min: number | null;
            /** Format: int64 */
            known_keys?: number;
            name: string;
            /** Format: int64 */
            nonce?: number;
            own?: boolean;
            physical_name: string;
            /** Format: int64 */
            rows: number;
            rows_exact: boolean;
        };
        TablePreview: {
            columns: components["schemas"]["QueryColumn"][];
            /** Format: double */
            elapsed_ms: number;
            /** @description Why there are no rows. */
            note: string;
            /** @description The plan of the database, a line for each step. */
            plan: string;
            /** @description Values are null, true or false, numbers, JSON of json columns, and text for all else. */
            rows: (unknown[] | null)[];
            /** @description The derived tables that it reads. */
            sources: string[];
            /** @description There were more rows than were asked for, or than an answer holds. */
            truncated: boolean;
        };
        TablePreviewInput: {
            definition: string;
            /** @description Of the table, which may not read itself. */
            name?: string;
        };
        TaggedRun: {
            run_id: string;
            tags: {
                [key: string]: string;
            } | null;
        };
        TagsInputBody: {
            /** @description All of them: a tag that is not among them is removed. */
            tags: {
                [key: string]: string;
            } | null;
            /** @description Those that were edited; 409 when the run has others by now. Without it, whatever is there is replaced. */
            was?: {
                [key: string]: string;
            };
        };
        Target: {
            adapter: string;
            allow_writes?: boolean;
            /** @description The name of a saved connection, or a connection spelled out. Passwords read as ***. */
            connection: string | {
                driver?: string;
                dsn?: string;
            };
            connection_id?: string;
            housekeeping_warehouse?: string;
            params?: unknown;
            prepare?: components["schemas"]["Prepare"];
            prepared?: boolean;
            table_name?: string;
            table_type?: string;
            warehouse?: string;
        };
        TargetPreflight: {
            checks: components["schemas"]["CheckResult"][] | null;
            creates: components["schemas"]["PreflightTable"][] | null;
            label: string;
            ok: boolean;
            plan: components["schemas"]["Plan"] | null;
            server: components["schemas"]["PreflightInfo"] | null;
            writes: components["schemas"]["Written"][] | null;
        };
        TargetReport: {
            against_first: components["schemas"]["Comparison"] | null;
            emulated: boolean;
            label: string;
            problem?: string;
            run_id: string;
            setup_failed: boolean;
            simulated: boolean;
            /** @enum {string} */
            status: "PREPARED" | "RUNNING" | "STOPPING" | "CANCELLING" | "COMPLETED" | "FAILED" | "CANCELLED";
            summary: components["schemas"]["Summary"] | null;
        };
        Template: {
            access: components["schemas"]["Access"];
            config: components["schemas"]["Scenario"];
            /** Format: date-time */
            created_at: string | null;
            created_by?: string;
            description?: string;
            name: string;
            source?: string;
            template_id: string;
            /** Format: date-time */
            updated_at: string | null;
            /** Format: int64 */
            version: number;
        };
        TemplateInput: {
            access?: components["schemas"]["AccessInput"];
            /** @description Or the scenario as JSON. */
            config?: {
                [key: string]: unknown;
            };
            /** @description The template's text, YAML or JSON; comments are kept. */
            source?: string;
        };
        TemplateList: {
            templates: components["schemas"]["Template"][] | null;
        };
        TemplateUpdateBody: {
            access?: components["schemas"]["AccessInput"];
            /** @description Or the scenario as JSON. */
            config?: {
                [key: string]: unknown;
            };
            /** @description Save nothing, and keep the version, when the template says all of this already, passwords too. Comments are not compared. */
            keep_equal?: boolean;
            /** @description The template's text, YAML or JSON; comments are kept. */
            source?: string;
            /**
             * Format: int64
             * @description The version that was edited; 409 when another has been saved since.
             */
            version: number;
        };
        ThresholdResult: {
            /** Format: double */
            actual: number | null;
            passed: boolean;
            reason?: string;
            threshold: string;
        };
        Timing: {
            /** Format: double */
            duration_seconds: number;
            /** Format: double */
            elapsed_display_seconds: number;
            /** Format: date-time */
            end_time: string | null;
            /** Format: double */
            expected_seconds_total: number;
            /** Format: date-time */
            measurement_end_time: string | null;
            /** Format: date-time */
            measurement_start_time: string | null;
            /** Format: double */
            phase_elapsed_seconds: number | null;
            /** Format: double */
            phase_remaining_seconds: number | null;
            /** Format: double */
            prepare_elapsed_seconds: number | null;
            /** Format: double */
            processing_elapsed_seconds: number | null;
            /** Format: date-time */
            processing_start_time: string | null;
            /** Format: date-time */
            start_time: string | null;
            /** Format: date-time */
            warmup_end_time: string | null;
            /** Format: double */
            warmup_seconds: number;
            /** Format: date-time */
            warmup_start_time: string | null;
        };
        Token: {
            /** Format: date-time */
            created_at: string | null;
            /** Format: date-time */
            expires_at: string | null;
            kind: string;
            /** Format: date-time */
            last_used_at: string | null;
            name: string;
            /** @enum {string} */
            scope: "read" | "run" | "metrics" | "write" | "admin";
            token_id: string;
            user_id: string;
        };
        TokenInputBody: {
            /**
             * Format: int64
             * @description 90 without it.
             */
            expires_in_days?: number;
            /** @description What the token is for. */
            name: string;
            /**
             * @description read only reads; run checks, starts and stops runs, too, as a pipeline does; metrics reads metrics and nothing else; write, the default, does everything but make and revoke tokens and what admins decide; admin does that too.
             * @enum {string}
             */
            scope?: "read" | "run" | "metrics" | "write" | "admin";
        };
        TokenList: {
            tokens: components["schemas"]["Token"][];
        };
        TransactionFigures: {
            /** Format: int64 */
            committed: number;
            /** Format: int64 */
            count: number;
            /** Format: int64 */
            failed: number;
            /** Format: int64 */
            rolled_back: number;
        };
        TrialFault: {
            hint: string;
            message: string;
            parameter: string;
            type?: string;
            value: string | null;
        };
        TrialParameter: {
            name: string;
            type: string;
            values: (string | null)[] | null;
        };
        TrialProblem: {
            field?: string;
            hint?: string;
            message: string;
        };
        TryInputBody: {
            /** @description Let the run write to tables that Loadstone did not make, as target.allow_writes in the scenario does. */
            allow_writes?: boolean;
            /** @description The names of the production connections that this loads, typed by whoever starts it: one, or a list. */
            confirm_production?: string | string[];
            /** @description or a scenario as JSON. */
            scenario?: {
                [key: string]: unknown;
            };
            /** @description Fields to replace, by path: {"workload.duration_seconds": 60}. Text is read as YAML, as on the command line. */
            set?: {
                [key: string]: unknown;
            };
            /** @description or a template's text in YAML or JSON, */
            source?: string;
            /** @description The id of the statement; the first when left out. */
            statement?: string;
            /** @description A saved template, by its id … */
            template_id?: string;
            /** @description … or by its name, */
            template_name?: string;
        };
        Unlike: {
            a: string;
            b: string;
            judged: boolean;
            what: string;
        };
        UsedByRun: {
            /** Format: date-time */
            created_at: string | null;
            run_id: string;
            run_name: string;
            /** @enum {string} */
            status: "PREPARED" | "RUNNING" | "STOPPING" | "CANCELLING" | "COMPLETED" | "FAILED" | "CANCELLED";
        };
        UsedByTemplate: {
            name: string;
            template_id: string;
        };
        User: {
            /** Format: date-time */
            created_at: string | null;
            /**
             * Format: date-time
             * @description When the user was locked out; null while it may sign in.
             */
            disabled_at: string | null;
            external: boolean;
            has_password: boolean;
            /** Format: date-time */
            last_seen_at: string | null;
            name: string;
            /** @enum {string} */
            role: "admin" | "operator" | "viewer";
            /** @description In the list of users: whether a code is asked for, too. */
            second_factor?: boolean;
            user_id: string;
        };
        UserList: {
            users: components["schemas"]["User"][];
        };
        Validation: {
            config: components["schemas"]["Scenario"] | null;
            errors: components["schemas"]["FieldError"][] | null;
            source: string;
            valid: boolean;
            /** @description Plugins and connections that it names and this server does not have. They do not make it invalid. */
            warnings: components["schemas"]["FieldError"][];
        };
        Validity: {
            causes: components["schemas"]["ValidityCause"][] | null;
            note_details?: components["schemas"]["Note"][] | null;
            notes: string[] | null;
            seen_notes?: string[] | null;
            /** @enum {string} */
            verdict: "VALID" | "DEGRADED" | "NONE";
        };
        ValidityCause: {
            about?: components["schemas"]["Note"];
            cause: string;
            detail: string;
            /** Format: date-time */
            from: string | null;
            /** Format: date-time */
            to: string | null;
        };
        Victim: {
            /**
             * Format: int64
             * @description What its executions take.
             */
            bytes: number;
            /** Format: date-time */
            ended_at: string | null;
            /** @enum {string} */
            reason: "run_age" | "execution_age" | "budget";
            run_id: string;
            run_name: string;
            /** @description The run goes; else its single executions. */
            whole: boolean;
        };
        Waiting: {
            /**
             * Format: int64
             * @description How many it needs.
             */
            connections: number;
            /** Format: int64 */
            free_connections: number;
            /**
             * Format: int64
             * @description Nodes that could carry it.
             */
            nodes: number;
            /**
             * Format: int64
             * @description 1 is the next to start.
             */
            position: number;
            /** @description What it waits for, in words. */
            reason: string;
            /** Format: date-time */
            since: string | null;
        };
        WaitingInfo: {
            asked_by: string;
            /**
             * Format: int64
             * @description How many it needs.
             */
            connections: number;
            /** Format: int64 */
            free_connections: number;
            /**
             * Format: int64
             * @description Nodes that could carry it.
             */
            nodes: number;
            /**
             * Format: int64
             * @description 1 is the next to start.
             */
            position: number;
            /** @description What it waits for, in words. */
            reason: string;
            run_id: string;
            /** Format: date-time */
            since: string | null;
            test_name: string;
        };
        Warehouse: {
            error?: string;
            fallback_warehouse: string | null;
            generation: string;
            /** Format: int64 */
            max_cluster_count: number | null;
            /** Format: int64 */
            min_cluster_count: number | null;
            name: string;
            /** Format: date-time */
            polled_at: string | null;
            /** Format: int64 */
            queued: number;
            raw?: unknown;
            /** Format: int64 */
            running: number;
            scaling_policy: string;
            size: string;
            /** Format: int64 */
            started_clusters: number | null;
            state: string;
            type: string;
        };
        WarehousePoint: {
            /** Format: double */
            elapsed_seconds: number;
            error?: string;
            fallback_warehouse: string | null;
            generation: string;
            /** Format: int64 */
            max_cluster_count: number | null;
            /** Format: int64 */
            min_cluster_count: number | null;
            name: string;
            /** Format: date-time */
            polled_at: string | null;
            /** Format: int64 */
            queued: number;
            raw?: unknown;
            /** Format: int64 */
            running: number;
            scaling_policy: string;
            size: string;
            /** Format: int64 */
            started_clusters: number | null;
            state: string;
            /** Format: date-time */
            timestamp: string;
            type: string;
        };
        WarehousePrice: {
            /**
             * Format: double
             * @description Of one cluster.
             */
            credits_per_hour: number;
            /**
             * Format: double
             * @description What each start is billed for at least.
             */
            minimum_seconds: number;
            warehouse_size: string;
            warehouse_type: string;
        };
        WarehouseSeries: {
            points: components["schemas"]["WarehousePoint"][] | null;
            /**
             * Format: double
             * @description How many seconds a poll stands for: 5, or a multiple of it.
             */
            resolution_seconds: number;
            slots: components["schemas"]["WarehouseSlot"][] | null;
        };
        WarehouseSlot: {
            /** Format: double */
            elapsed_seconds: number;
            /** Format: double */
            qps: number | null;
            /** Format: int64 */
            queued: number | null;
            /** Format: int64 */
            running: number | null;
            /** Format: date-time */
            slot_start: string | null;
            /** Format: int64 */
            started_clusters: number | null;
        };
        Ways: {
            /** @description The name of the sign-in provider; empty when there is none. */
            provider: string;
        };
        Worked: {
            /** Format: date-time */
            at: string | null;
            /** @enum {string} */
            by: "test" | "run";
            /** @description Whether the connection was changed after that. */
            changed_since: boolean;
            run_id?: string;
        };
        WorkerErrors: {
            by_class: {
                [key: string]: number;
            } | null;
            /** Format: int64 */
            count: number | null;
            /** Format: double */
            rate: number | null;
            top: components["schemas"]["ErrorGroup"][] | null;
        };
        WorkerPoint: {
            /** Format: int64 */
            active_connections: number;
            /** Format: double */
            elapsed_seconds: number;
            /** Format: int64 */
            error_count: number;
            /** Format: double */
            p50_latency_ms: number | null;
            /** Format: double */
            p95_latency_ms: number | null;
            /** Format: double */
            p99_latency_ms: number | null;
            /** @enum {string} */
            phase: "PREPARING" | "WARMUP" | "MEASUREMENT" | "COOLDOWN" | "PROCESSING" | "";
            /** Format: double */
            qps: number;
            /** Format: int64 */
            target_connections: number;
            /** Format: date-time */
            timestamp: string;
            /** Format: int64 */
            total_queries: number;
            worker_id: string;
        };
        WorkerTarget: {
            /** Format: int64 */
            target_connections: number;
            /** Format: double */
            target_qps?: number;
        };
        Workload: {
            /** @enum {string} */
            arrival: "constant" | "poisson" | "workload";
            binds?: string;
            catch_up?: string;
            /** Format: int64 */
            concurrent_connections: number;
            /** Format: double */
            duration_seconds: number;
            feed?: components["schemas"]["Feed"];
            /** @enum {string} */
            io_engine: "auto" | "io_uring" | "events" | "goroutines";
            isolation_level?: string;
            /** @enum {string} */
            load_mode: "CONCURRENCY" | "QPS" | "FIND_MAX_CONCURRENCY";
            /** Format: int64 */
            max_in_flight: number;
            on_disconnect?: string;
            params: unknown;
            plugin: string;
            /** Format: double */
            read_percent?: number;
            /** Format: int64 */
            reconnect_every: number;
            /** Format: double */
            reconnect_for_seconds?: number;
            /** Format: int64 */
            repeat: number;
            retry?: components["schemas"]["Retry"];
            /** Format: int64 */
            seed: number;
            stages?: components["schemas"]["Stage"][] | null;
            /** Format: int64 */
            statement_timeout_ms: number;
            stop?: components["schemas"]["Stop"];
            /** Format: double */
            target_qps: number | null;
            /** Format: double */
            think_time_ms: number;
            /** Format: double */
            tolerate_outage_seconds?: number;
            /** Format: double */
            warmup_seconds: number;
            /** Format: double */
            write_percent?: number;
        };
        Written: {
            cascades: string[] | null;
            /** Format: int64 */
            children?: number;
            foreign_server?: string;
            opaque?: boolean;
            operations: string[] | null;
            own: boolean;
            /** Format: int64 */
            partitions?: number;
            row_security: boolean;
            /** Format: int64 */
            rows: number;
            statements: string[] | null;
            system?: boolean;
            table: string;
            /** Format: int64 */
            triggers: number;
            view?: boolean;
        };
    };
    responses: never;
    parameters: never;
    requestBodies: never;
    headers: never;
    pathItems: never;
}
export type Access = components['schemas']['Access'];
export type AccessInput = components['schemas']['AccessInput'];
export type AccessUser = components['schemas']['AccessUser'];
export type Accounting = components['schemas']['Accounting'];
export type AggregateEnrichment = components['schemas']['AggregateEnrichment'];
export type AggregateStatements = components['schemas']['AggregateStatements'];
export type Artifact = components['schemas']['Artifact'];
export type ArtifactPage = components['schemas']['ArtifactPage'];
export type AuditEntry = components['schemas']['AuditEntry'];
export type AuditPage = components['schemas']['AuditPage'];
export type AuditRetention = components['schemas']['AuditRetention'];
export type AuditRetentionChange = components['schemas']['AuditRetentionChange'];
export type Baseline = components['schemas']['Baseline'];
export type BaselineInputBody = components['schemas']['BaselineInputBody'];
export type Beginning = components['schemas']['Beginning'];
export type BeginTotpInputBody = components['schemas']['BeginTOTPInputBody'];
export type Begun = components['schemas']['Begun'];
export type Bind = components['schemas']['Bind'];
export type Blocker = components['schemas']['Blocker'];
export type Calibration = components['schemas']['Calibration'];
export type CatalogColumn = components['schemas']['CatalogColumn'];
export type CatalogInputBody = components['schemas']['CatalogInputBody'];
export type CatalogRelation = components['schemas']['CatalogRelation'];
export type ChangeUserInputBody = components['schemas']['ChangeUserInputBody'];
export type CheckResult = components['schemas']['CheckResult'];
export type CodeInputBody = components['schemas']['CodeInputBody'];
export type Column = components['schemas']['Column'];
export type ComparedPart = components['schemas']['ComparedPart'];
export type Comparison = components['schemas']['Comparison'];
export type Connection = components['schemas']['Connection'];
export type ConnectionChange = components['schemas']['ConnectionChange'];
export type ConnectionFigures = components['schemas']['ConnectionFigures'];
export type ConnectionInput = components['schemas']['ConnectionInput'];
export type ConnectionList = components['schemas']['ConnectionList'];
export type ConnectionTest = components['schemas']['ConnectionTest'];
export type ConnectionTestBody = components['schemas']['ConnectionTestBody'];
export type ConnectionUse = components['schemas']['ConnectionUse'];
export type Constraint = components['schemas']['Constraint'];
export type Cost = components['schemas']['Cost'];
export type CustomMetrics = components['schemas']['CustomMetrics'];
export type Delivery = components['schemas']['Delivery'];
export type DerivedTable = components['schemas']['DerivedTable'];
export type DerivedTableChange = components['schemas']['DerivedTableChange'];
export type DerivedTableDetail = components['schemas']['DerivedTableDetail'];
export type DerivedTableInput = components['schemas']['DerivedTableInput'];
export type DerivedTableList = components['schemas']['DerivedTableList'];
export type Destination = components['schemas']['Destination'];
export type Destinations = components['schemas']['Destinations'];
export type Dispersion = components['schemas']['Dispersion'];
export type Drops = components['schemas']['Drops'];
export type EndTotpInputBody = components['schemas']['EndTOTPInputBody'];
export type Enrichment = components['schemas']['Enrichment'];
export type Environment = components['schemas']['Environment'];
export type ErrorFigures = components['schemas']['ErrorFigures'];
export type ErrorGroup = components['schemas']['ErrorGroup'];
export type Event = components['schemas']['Event'];
export type EventData = components['schemas']['EventData'];
export type EventPage = components['schemas']['EventPage'];
export type Execution = components['schemas']['Execution'];
export type ExecutionPage = components['schemas']['ExecutionPage'];
export type Failing = components['schemas']['Failing'];
export type FailingTime = components['schemas']['FailingTime'];
export type Failure = components['schemas']['Failure'];
export type FailureExample = components['schemas']['FailureExample'];
export type Failures = components['schemas']['Failures'];
export type Feed = components['schemas']['Feed'];
export type FieldError = components['schemas']['FieldError'];
export type Figures = components['schemas']['Figures'];
export type Fill = components['schemas']['Fill'];
export type Finding = components['schemas']['Finding'];
export type FindingSession = components['schemas']['FindingSession'];
export type FindMax = components['schemas']['FindMax'];
export type FindMaxHysteresis = components['schemas']['FindMaxHysteresis'];
export type FindMaxRepetition = components['schemas']['FindMaxRepetition'];
export type FindMaxResult = components['schemas']['FindMaxResult'];
export type FindMaxSpread = components['schemas']['FindMaxSpread'];
export type FindMaxState = components['schemas']['FindMaxState'];
export type FindMaxStep = components['schemas']['FindMaxStep'];
export type FragmentCounts = components['schemas']['FragmentCounts'];
export type FreeRows = components['schemas']['FreeRows'];
export type Freezes = components['schemas']['Freezes'];
export type GeneratorSample = components['schemas']['GeneratorSample'];
export type GivenHook = components['schemas']['GivenHook'];
export type GivenPrices = components['schemas']['GivenPrices'];
export type GivenRules = components['schemas']['GivenRules'];
export type Guardrails = components['schemas']['Guardrails'];
export type GuardrailState = components['schemas']['GuardrailState'];
export type Healthy = components['schemas']['Healthy'];
export type HiddenPercentile = components['schemas']['HiddenPercentile'];
export type HistogramBucket = components['schemas']['HistogramBucket'];
export type HistogramData = components['schemas']['HistogramData'];
export type Hook = components['schemas']['Hook'];
export type Info = components['schemas']['Info'];
export type Invitation = components['schemas']['Invitation'];
export type IoCost = components['schemas']['IOCost'];
export type KeptBinds = components['schemas']['KeptBinds'];
export type KeptCall = components['schemas']['KeptCall'];
export type KeptExecution = components['schemas']['KeptExecution'];
export type KeptRuns = components['schemas']['KeptRuns'];
export type KeptValue = components['schemas']['KeptValue'];
export type KindCurve = components['schemas']['KindCurve'];
export type KindCurves = components['schemas']['KindCurves'];
export type KindEnrichment = components['schemas']['KindEnrichment'];
export type KindFigures = components['schemas']['KindFigures'];
export type KindRate = components['schemas']['KindRate'];
export type KnownQueryLogin = components['schemas']['KnownQueryLogin'];
export type Latency = components['schemas']['Latency'];
export type LatencyMs = components['schemas']['LatencyMs'];
export type LeastCost = components['schemas']['LeastCost'];
export type LeftPlace = components['schemas']['LeftPlace'];
export type Link = components['schemas']['Link'];
export type LivePercentile = components['schemas']['LivePercentile'];
export type LoadInput = components['schemas']['LoadInput'];
export type LoadPart = components['schemas']['LoadPart'];
export type LogEntry = components['schemas']['LogEntry'];
export type LogicalColumn = components['schemas']['LogicalColumn'];
export type LogicalIndex = components['schemas']['LogicalIndex'];
export type LogicalTable = components['schemas']['LogicalTable'];
export type LogPage = components['schemas']['LogPage'];
export type Manifest = components['schemas']['Manifest'];
export type Mark = components['schemas']['Mark'];
export type MarkChange = components['schemas']['MarkChange'];
export type MarkInput = components['schemas']['MarkInput'];
export type MarkList = components['schemas']['MarkList'];
export type MarkWas = components['schemas']['MarkWas'];
export type Matrix = components['schemas']['Matrix'];
export type MatrixList = components['schemas']['MatrixList'];
export type MatrixReport = components['schemas']['MatrixReport'];
export type MatrixRun = components['schemas']['MatrixRun'];
export type MatrixState = components['schemas']['MatrixState'];
export type MatrixTarget = components['schemas']['MatrixTarget'];
export type Me = components['schemas']['Me'];
export type MeasuredSecond = components['schemas']['MeasuredSecond'];
export type MeasuredSeconds = components['schemas']['MeasuredSeconds'];
export type Message = components['schemas']['Message'];
export type Metric = components['schemas']['Metric'];
export type Needs = components['schemas']['Needs'];
export type NewNodeToken = components['schemas']['NewNodeToken'];
export type NewShare = components['schemas']['NewShare'];
export type NewToken = components['schemas']['NewToken'];
export type NewUserInputBody = components['schemas']['NewUserInputBody'];
export type Node = components['schemas']['Node'];
export type NodeAddress = components['schemas']['NodeAddress'];
export type NodeAddressInputBody = components['schemas']['NodeAddressInputBody'];
export type NodeAddressList = components['schemas']['NodeAddressList'];
export type NodeEvent = components['schemas']['NodeEvent'];
export type NodeEventList = components['schemas']['NodeEventList'];
export type NodeList = components['schemas']['NodeList'];
export type NodeRoom = components['schemas']['NodeRoom'];
export type NodeRunWorker = components['schemas']['NodeRunWorker'];
export type NodeToken = components['schemas']['NodeToken'];
export type NodeTokenInputBody = components['schemas']['NodeTokenInputBody'];
export type NodeTokenList = components['schemas']['NodeTokenList'];
export type Note = components['schemas']['Note'];
export type NoteInputBody = components['schemas']['NoteInputBody'];
export type Notifications = components['schemas']['Notifications'];
export type Omission = components['schemas']['Omission'];
export type Outage = components['schemas']['Outage'];
export type OutageKind = components['schemas']['OutageKind'];
export type OwnedToken = components['schemas']['OwnedToken'];
export type OwnedTokens = components['schemas']['OwnedTokens'];
export type PackedKeys = components['schemas']['PackedKeys'];
export type PartComparison = components['schemas']['PartComparison'];
export type Pass = components['schemas']['Pass'];
export type PasswordInputBody = components['schemas']['PasswordInputBody'];
export type Payload = components['schemas']['Payload'];
export type PayloadConnections = components['schemas']['PayloadConnections'];
export type PayloadErrors = components['schemas']['PayloadErrors'];
export type PayloadOperations = components['schemas']['PayloadOperations'];
export type PayloadOps = components['schemas']['PayloadOps'];
export type PayloadWorker = components['schemas']['PayloadWorker'];
export type PayloadWorkerMetrics = components['schemas']['PayloadWorkerMetrics'];
export type PendingRefresh = components['schemas']['PendingRefresh'];
export type PercentileError = components['schemas']['PercentileError'];
export type Plan = components['schemas']['Plan'];
export type PluginEntry = components['schemas']['PluginEntry'];
export type PluginList = components['schemas']['PluginList'];
export type PluginRef = components['schemas']['PluginRef'];
export type PluginStatement = components['schemas']['PluginStatement'];
export type PluginUse = components['schemas']['PluginUse'];
export type Point = components['schemas']['Point'];
export type Pool = components['schemas']['Pool'];
export type Preflight = components['schemas']['Preflight'];
export type PreflightInfo = components['schemas']['PreflightInfo'];
export type PreflightInputBody = components['schemas']['PreflightInputBody'];
export type PreflightTable = components['schemas']['PreflightTable'];
export type Prepare = components['schemas']['Prepare'];
export type PrepareProgress = components['schemas']['PrepareProgress'];
export type Preview = components['schemas']['Preview'];
export type PriceList = components['schemas']['PriceList'];
export type Problem = components['schemas']['Problem'];
export type QueryAnswer = components['schemas']['QueryAnswer'];
export type QueryCancel = components['schemas']['QueryCancel'];
export type QueryCatalog = components['schemas']['QueryCatalog'];
export type QueryColumn = components['schemas']['QueryColumn'];
export type QueryExport = components['schemas']['QueryExport'];
export type QueryLogin = components['schemas']['QueryLogin'];
export type QueryLoginInput = components['schemas']['QueryLoginInput'];
export type QueryLoginList = components['schemas']['QueryLoginList'];
export type QueryQuestion = components['schemas']['QueryQuestion'];
export type QueryRelation = components['schemas']['QueryRelation'];
export type Ready = components['schemas']['Ready'];
export type ReadyChecks = components['schemas']['ReadyChecks'];
export type RecordRead = components['schemas']['RecordRead'];
export type RecoveryCodes = components['schemas']['RecoveryCodes'];
export type RefreshClaim = components['schemas']['RefreshClaim'];
export type RefreshHistory = components['schemas']['RefreshHistory'];
export type RefreshRecord = components['schemas']['RefreshRecord'];
export type RefreshWorker = components['schemas']['RefreshWorker'];
export type RelationCatalog = components['schemas']['RelationCatalog'];
export type Resources = components['schemas']['Resources'];
export type Retention = components['schemas']['Retention'];
export type Retry = components['schemas']['Retry'];
export type Rule = components['schemas']['Rule'];
export type Rules = components['schemas']['Rules'];
export type RuleState = components['schemas']['RuleState'];
export type Run = components['schemas']['Run'];
export type RunAccount = components['schemas']['RunAccount'];
export type RunCreateBody = components['schemas']['RunCreateBody'];
export type RunDetail = components['schemas']['RunDetail'];
export type RunExport = components['schemas']['RunExport'];
export type RunFromTemplateBody = components['schemas']['RunFromTemplateBody'];
export type RunList = components['schemas']['RunList'];
export type RunNote = components['schemas']['RunNote'];
export type RunRecord = components['schemas']['RunRecord'];
export type RunResult = components['schemas']['RunResult'];
export type RunRow = components['schemas']['RunRow'];
export type RunView = components['schemas']['RunView'];
export type RunViewChange = components['schemas']['RunViewChange'];
export type RunViewInput = components['schemas']['RunViewInput'];
export type RunViewList = components['schemas']['RunViewList'];
export type RunViewShared = components['schemas']['RunViewShared'];
export type SampleList = components['schemas']['SampleList'];
export type SamplesInputBody = components['schemas']['SamplesInputBody'];
export type SavedQuery = components['schemas']['SavedQuery'];
export type SavedQueryInput = components['schemas']['SavedQueryInput'];
export type SavedQueryList = components['schemas']['SavedQueryList'];
export type SaveInputBody = components['schemas']['SaveInputBody'];
export type Scaling = components['schemas']['Scaling'];
export type Scenario = components['schemas']['Scenario'];
export type Schedule = components['schemas']['Schedule'];
export type ScheduleChange = components['schemas']['ScheduleChange'];
export type ScheduledStart = components['schemas']['ScheduledStart'];
export type ScheduledStartList = components['schemas']['ScheduledStartList'];
export type ScheduleInput = components['schemas']['ScheduleInput'];
export type ScheduleList = components['schemas']['ScheduleList'];
export type ScheduleTimes = components['schemas']['ScheduleTimes'];
export type SeenError = components['schemas']['SeenError'];
export type Sends = components['schemas']['Sends'];
export type Series = components['schemas']['Series'];
export type ServerEvent = components['schemas']['ServerEvent'];
export type ServerFigures = components['schemas']['ServerFigures'];
export type ServerIdentity = components['schemas']['ServerIdentity'];
export type ServerInfo = components['schemas']['ServerInfo'];
export type ServerSecond = components['schemas']['ServerSecond'];
export type ServerSplitMs = components['schemas']['ServerSplitMs'];
export type ServerTime = components['schemas']['ServerTime'];
export type ServerView = components['schemas']['ServerView'];
export type Setup = components['schemas']['Setup'];
export type Share = components['schemas']['Share'];
export type ShareInputBody = components['schemas']['ShareInputBody'];
export type ShareList = components['schemas']['ShareList'];
export type Signed = components['schemas']['Signed'];
export type SignInInputBody = components['schemas']['SignInInputBody'];
export type Slo = components['schemas']['SLO'];
export type SlowExecution = components['schemas']['SlowExecution'];
export type SplitMs = components['schemas']['SplitMs'];
export type Stage = components['schemas']['Stage'];
export type Stall = components['schemas']['Stall'];
export type StandIn = components['schemas']['StandIn'];
export type StartInputBody = components['schemas']['StartInputBody'];
export type State = components['schemas']['State'];
export type Statement = components['schemas']['Statement'];
export type StatementFigures = components['schemas']['StatementFigures'];
export type StatementLatencyMs = components['schemas']['StatementLatencyMs'];
export type StatementResult = components['schemas']['StatementResult'];
export type StatementResults = components['schemas']['StatementResults'];
export type StatementsInput = components['schemas']['StatementsInput'];
export type StatementTrial = components['schemas']['StatementTrial'];
export type Stop = components['schemas']['Stop'];
export type StoppedRun = components['schemas']['StoppedRun'];
export type StopReport = components['schemas']['StopReport'];
export type StreamAlert = components['schemas']['StreamAlert'];
export type StreamCatalog = components['schemas']['StreamCatalog'];
export type StreamColumn = components['schemas']['StreamColumn'];
export type StreamCounts = components['schemas']['StreamCounts'];
export type StreamFragment = components['schemas']['StreamFragment'];
export type StreamPlace = components['schemas']['StreamPlace'];
export type StreamQuery = components['schemas']['StreamQuery'];
export type StreamSink = components['schemas']['StreamSink'];
export type StreamSource = components['schemas']['StreamSource'];
export type StreamTrouble = components['schemas']['StreamTrouble'];
export type StreamWorker = components['schemas']['StreamWorker'];
export type Summary = components['schemas']['Summary'];
export type Supports = components['schemas']['Supports'];
export type Table = components['schemas']['Table'];
export type TablePreview = components['schemas']['TablePreview'];
export type TablePreviewInput = components['schemas']['TablePreviewInput'];
export type TaggedRun = components['schemas']['TaggedRun'];
export type TagsInputBody = components['schemas']['TagsInputBody'];
export type Target = components['schemas']['Target'];
export type TargetPreflight = components['schemas']['TargetPreflight'];
export type TargetReport = components['schemas']['TargetReport'];
export type Template = components['schemas']['Template'];
export type TemplateInput = components['schemas']['TemplateInput'];
export type TemplateList = components['schemas']['TemplateList'];
export type TemplateUpdateBody = components['schemas']['TemplateUpdateBody'];
export type ThresholdResult = components['schemas']['ThresholdResult'];
export type Timing = components['schemas']['Timing'];
export type Token = components['schemas']['Token'];
export type TokenInputBody = components['schemas']['TokenInputBody'];
export type TokenList = components['schemas']['TokenList'];
export type TransactionFigures = components['schemas']['TransactionFigures'];
export type TrialFault = components['schemas']['TrialFault'];
export type TrialParameter = components['schemas']['TrialParameter'];
export type TrialProblem = components['schemas']['TrialProblem'];
export type TryInputBody = components['schemas']['TryInputBody'];
export type Unlike = components['schemas']['Unlike'];
export type UsedByRun = components['schemas']['UsedByRun'];
export type UsedByTemplate = components['schemas']['UsedByTemplate'];
export type User = components['schemas']['User'];
export type UserList = components['schemas']['UserList'];
export type Validation = components['schemas']['Validation'];
export type Validity = components['schemas']['Validity'];
export type ValidityCause = components['schemas']['ValidityCause'];
export type Victim = components['schemas']['Victim'];
export type Waiting = components['schemas']['Waiting'];
export type WaitingInfo = components['schemas']['WaitingInfo'];
export type Warehouse = components['schemas']['Warehouse'];
export type WarehousePoint = components['schemas']['WarehousePoint'];
export type WarehousePrice = components['schemas']['WarehousePrice'];
export type WarehouseSeries = components['schemas']['WarehouseSeries'];
export type WarehouseSlot = components['schemas']['WarehouseSlot'];
export type Ways = components['schemas']['Ways'];
export type Worked = components['schemas']['Worked'];
export type WorkerErrors = components['schemas']['WorkerErrors'];
export type WorkerPoint = components['schemas']['WorkerPoint'];
export type WorkerTarget = components['schemas']['WorkerTarget'];
export type Workload = components['schemas']['Workload'];
export type Written = components['schemas']['Written'];
export type $defs = Record<string, never>;
export type operations = Record<string, never>;
