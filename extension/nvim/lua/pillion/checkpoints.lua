-- Checkpoints: restores the files, the conversation or both to the state before a prompt, and redoes that.
local log = require("pillion.log")

local M = {}

local function when(c)
  return (c.time or ""):match("T(%d%d:%d%d)") or ""
end

local function label(c)
  local added, removed = 0, 0
  for _, f in ipairs(c.files or {}) do
    added, removed = added + (f.added or 0), removed + (f.removed or 0)
  end
  local n = #(c.files or {})
  local files = n == 0 and "no files changed" or ("%d file%s, +%d -%d"):format(n, n == 1 and "" or "s", added, removed)
  return ("%s  %s%s  (%s)%s"):format(when(c), c.kind == "restore" and "before going back: " or "before: ", c.title, files, c.current and "  ← now" or "")
end

local function prompt_text(blocks)
  local out = {}
  for _, b in ipairs(blocks or {}) do
    if b.type == "text" then
      out[#out + 1] = b.text
    end
  end
  return table.concat(out, "\n")
end

---@param session pillion.Session
---@param id string
---@param scope "files"|"conversation"|"both"
---@param forward? boolean redo
function M.restore(session, id, scope, forward)
  session:call("_pillion/checkpoint/restore", { checkpointId = id, scope = scope }, function(err, r)
    if err then
      return log.tell("error", err.message)
    end
    local counts, bad = {}, {}
    for _, f in ipairs(r.files or {}) do
      counts[f.status] = (counts[f.status] or 0) + 1
      if f.status == "conflict" or f.status == "failed" then
        bad[#bad + 1] = require("pillion.paths").short(require("pillion.paths").from_uri(f.uri)) .. (f.reason and (": " .. f.reason) or "")
      end
    end
    local words = {}
    for _, s in ipairs({ "restored", "merged", "unchanged", "conflict", "failed" }) do
      if counts[s] then
        words[#words + 1] = counts[s] .. " " .. s
      end
    end
    session.undone = not forward and r.undo or nil
    local what = forward and "Redone: " or "Undone: "
    local hint = forward and " :Pillion undo undoes it again." or " :Pillion redo brings it back."
    session:note(#bad > 0 and "warning" or "info", what .. (#words > 0 and table.concat(words, ", ") or "no files were changed") .. "." .. hint .. (#bad > 0 and ("\n" .. table.concat(bad, "\n")) or ""))
    require("pillion.session").check_disk()
    local text = scope ~= "files" and prompt_text(r.prompt) or ""
    if text ~= "" and session.view then
      session.view:set_input(text)
    end
  end)
end

local function list(session, callback)
  session:call("_pillion/checkpoint/list", {}, function(err, r)
    if err then
      return log.tell("error", err.message)
    end
    callback(r.checkpoints or {})
  end)
end

-- Lets the person choose a checkpoint and what to restore.
---@param session pillion.Session
function M.pick(session)
  list(session, function(all)
    if #all == 0 then
      return log.tell("info", "no checkpoints yet; each prompt makes one")
    end
    local newest = {}
    for i = #all, 1, -1 do
      newest[#newest + 1] = all[i]
    end
    vim.ui.select(newest, { prompt = "Go back to", format_item = label }, function(c)
      if not c then
        return
      end
      local scopes = { { "both", "Files and conversation" }, { "files", "Files only" }, { "conversation", "Conversation only" } }
      vim.ui.select(scopes, {
        prompt = "Go back with",
        format_item = function(s)
          return s[2]
        end,
      }, function(s)
        if s then
          M.restore(session, c.id, s[1])
        end
      end)
    end)
  end)
end

-- Undoes the last prompt: its changes and its part of the conversation.
---@param session pillion.Session
function M.undo(session)
  list(session, function(all)
    for i = #all, 1, -1 do
      local c = all[i]
      if c.current then
        -- This prompt is undone already, so undo the one before it.
        for j = i - 1, 1, -1 do
          if all[j].kind == "prompt" then
            return M.restore(session, all[j].id, "both")
          end
        end
        return log.tell("info", "nothing to undo: this is the state before the first prompt")
      end
    end
    for i = #all, 1, -1 do
      if all[i].kind == "prompt" then
        return M.restore(session, all[i].id, "both")
      end
    end
    log.tell("info", "nothing to undo yet")
  end)
end

-- Redoes what the last undo undid.
---@param session pillion.Session
function M.redo(session)
  if not session.undone then
    return log.tell("info", "nothing to redo: :Pillion undo was not the last step")
  end
  local id = session.undone
  session.undone = nil
  M.restore(session, id, "both", true)
end

return M
