import { useMutation, useQueryClient } from '@tanstack/react-query';
import { type FormEvent, useState } from 'react';
import { api, asProblem } from '../api/client';
import type { Template } from '../api/types';
import { AccessFields, accessInput, draftOf, useIsOwner } from '../app/AccessFields';
import { Dialog } from '../design/Dialog';
import { ProblemNotice } from '../design/States';
import { useToast } from '../design/Toast';

/** TemplateAccess edits who may use a template. */
export function TemplateAccess({ template, onClose }: { template: Template; onClose: () => void }) {
  const [draft, setDraft] = useState(draftOf(template.access));
  const owns = useIsOwner(template.access);
  const qc = useQueryClient();
  const toast = useToast();
  const save = useMutation({
    mutationFn: async () => {
      const access = accessInput(draft, template.access);
      if (!access) return;
      const path = { id: template.template_id };
      // List rows omit large fields; saving needs the whole template.
      const whole = await api.get('/api/templates/{id}', { path, asStored: true });
      await api.put('/api/templates/{id}', { path, body: { source: whole.source, version: whole.version, access } });
    },
    onSuccess: async () => {
      await qc.invalidateQueries({ queryKey: ['templates'] });
      toast(`Access to “${template.name}” saved.`, 'ok');
      onClose();
    },
  });
  const submit = (e: FormEvent) => {
    e.preventDefault();
    save.mutate();
  };
  const wrong = save.error ? asProblem(save.error).fields.find((f) => f.field.startsWith('access')) : undefined;
  return (
    <Dialog title={`Who may use “${template.name}”`} onClose={onClose}>
      <form className="stack" onSubmit={submit}>
        <AccessFields saved={template.access} value={draft} onChange={setDraft} problem={wrong?.message} />
        {save.error && !wrong && <ProblemNotice error={save.error} />}
        <div className="actions">
          <button type="button" className="btn" onClick={onClose}>
            {owns ? 'Cancel' : 'Close'}
          </button>
          {owns && (
            <button type="submit" className="btn primary" disabled={save.isPending}>
              Save
            </button>
          )}
        </div>
      </form>
    </Dialog>
  );
}
