import "./kit/tokens.css";
import "./kit/elements.css";
import { QueryClientProvider } from "@tanstack/react-query";
import { RouterProvider } from "@tanstack/react-router";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { makeQueryClient } from "./api/queries.ts";
import { applyTheme, storedTheme } from "./kit/theme.ts";
import { makeRouter } from "./screens/router.tsx";

applyTheme(storedTheme());

const place = document.getElementById("root");
if (place === null) {
  throw new Error("the page has no element `root`");
}
const queries = makeQueryClient();
const router = makeRouter(queries);
// The code and the data of the screen are on their way while the shell is drawn.
void router.load();
createRoot(place).render(
  <StrictMode>
    <QueryClientProvider client={queries}>
      <RouterProvider router={router} />
    </QueryClientProvider>
  </StrictMode>,
);
