import 'uplot/dist/uPlot.min.css';
import './design/fonts.css';
import './design/tokens.css';
import './design/base.css';
import './design/controls.css';
import './design/parts.css';
import './design/layout.css';
import './charts/charts.css';
import './runs/runs.css';
import './runs/findmax.css';
import './runs/guards.css';
import './app/app.css';
import './templates/templates.css';
import './plugins/plugins.css';
import { QueryClientProvider } from '@tanstack/react-query';
import { StrictMode } from 'react';
import { createRoot } from 'react-dom/client';
import { client } from './api/queries';
import { App } from './app/App';
import { Crash } from './app/Crash';
import { reloadWhenRestored } from './app/signOut';
import { Tips } from './design/Controls';
import { Toasts } from './design/Toast';

reloadWhenRestored();

createRoot(document.getElementById('root')!).render(
  <StrictMode>
    <Crash>
      <QueryClientProvider client={client}>
        <Tips>
          <Toasts>
            <App />
          </Toasts>
        </Tips>
      </QueryClientProvider>
    </Crash>
  </StrictMode>,
);
