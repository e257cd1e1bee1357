/** The addresses for logging in and out, which are for browsers and no part of `openapi.json`. */

export const LOGIN_PATH = "/auth/login";
export const LOGOUT_PATH = "/auth/logout";
export const SESSION_PATH = "/auth/session";
